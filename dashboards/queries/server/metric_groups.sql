-- What do metrics say of every living group?
--
-- Parameters: none.
-- Columns: one row per group; the columns of group_health keep their names, and
--   idle_members  members of the newest decision that own nothing, not even a standby task; NULL without members, and where it cannot be read of one of
--                them what it owns
--   idle_some     the same; NULL for none
--   has_verdict, has_state, has_lag_status  1 where the column is known
--   is_stable     1 in the state Stable, else 0
--   unread_min, unread_max  bounds of the time when its oldest unread record could be read: between two rows the group
--                falls further behind, unless it keeps up
--   newest_time   time of the cluster's newest round
SELECT
  h.cluster, h.group_id, h.state, h.protocol_type, h.strategy, h.strategy_mismatch, h.members, h.verdict,
  h.drifted_count, h.findings, h.partitions, h.assigned_partitions, h.lag_total, h.lag_max, h.lag_unknown,
  h.lag_status, h.imbalance, h.imbalance_optimal, h.last_decision_time, m.idle_members,
  nullif(m.idle_members, 0) AS idle_some,
  CASE WHEN h.verdict <> '' THEN 1 END AS has_verdict, CASE WHEN h.state <> '' THEN 1 END AS has_state,
  CASE WHEN h.lag_status <> '' THEN 1 END AS has_lag_status, CASE WHEN h.state = 'Stable' THEN 1 ELSE 0 END AS is_stable,
  h.row_holds - INTERVAL '0.001' SECOND * CAST(h.time_behind_seconds_min * 1000 AS BIGINT) AS unread_max,
  h.row_holds - INTERVAL '0.001' SECOND * CAST(h.time_behind_seconds_max * 1000 AS BIGINT) AS unread_min,
  h.newest_time
FROM (
  SELECT g.*, r.round_time AS newest_time,
    CASE WHEN g.time_behind_topic IS NULL AND g.time_behind_reason IS NULL THEN r.round_time
      ELSE least(g.round_time, r.round_time) END AS row_holds
  FROM group_health_current AS g
  JOIN rounds_current AS r ON r.cluster = g.cluster
) AS h
LEFT JOIN (
  SELECT cluster, group_id,
    CASE WHEN count(partition_count) = count(*)
      -- (As text, because the two engines count the items of a list by other functions.)
      THEN CAST(sum(CASE WHEN partition_count = 0 AND coalesce(CAST(tasks AS STRING), '[]') = '[]' THEN 1 ELSE 0 END)
        AS BIGINT) END AS idle_members
  FROM members_current
  GROUP BY cluster, group_id
) AS m ON m.cluster = h.cluster AND m.group_id = h.group_id
ORDER BY h.cluster, h.group_id
