-- What do metrics say of every living group?
--
-- Parameters: none.
-- Columns: one row per group; the columns of group_health keep their names, and
--   idle_members  members of the newest decision that own nothing; NULL without members, and where it cannot be read of one of
--                them what it owns
SELECT
  h.cluster, h.group_id, h.state, h.protocol_type, h.strategy, h.strategy_mismatch, h.members, h.verdict,
  h.drifted_count, h.findings, h.partitions, h.assigned_partitions, h.lag_total, h.lag_max, h.lag_unknown,
  h.lag_status, h.imbalance, h.imbalance_optimal, h.last_decision_time, h.time_behind_seconds_min,
  h.time_behind_seconds_max, h.time_behind_topic, h.time_behind_reason, h.round_time, m.idle_members
FROM group_health_current AS h
LEFT JOIN (
  SELECT cluster, group_id,
    CASE WHEN count(partition_count) = count(*)
      THEN CAST(sum(CASE WHEN partition_count = 0 THEN 1 ELSE 0 END) AS BIGINT) END AS idle_members
  FROM members_current
  GROUP BY cluster, group_id
) AS m ON m.cluster = h.cluster AND m.group_id = h.group_id
ORDER BY h.cluster, h.group_id
