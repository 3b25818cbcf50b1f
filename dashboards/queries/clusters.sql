-- How is each cluster? Its newest round and the sums of its groups; of one without a round yet nothing but its name.
--
-- Parameters: none.
-- Columns: one row per cluster; the columns of the table rounds keep their names, and
--   living_groups       groups that live
--   members             their members
--   lag_total           sum of their known lag; NULL when none is known
--   lag_unknown         partitions whose lag is not known
--   not_visible         groups that subscribe to a topic that the probe does not see
--   retention_unknown   groups that are behind on topics whose retention the probe was not told
--   type_unknown        groups of which the broker does not say the type
--   seen                groups that are only seen in rounds, because their log is not read (source is not log)
--   blocked             groups whose lag is unknown because an open transaction blocks the offsets log
--   drifted             groups whose newest verdict is drifted
SELECT w.cluster, r.cluster_id, r.round, r.round_time, r.closed_time, r.interval_ms, r.probe, r.groups, r.events,
  r.log_partitions, r.held_partitions, r.log_records, r.offsets_retention_minutes, r.brokers, r.brokers_gone,
  r.brokers_joined,
  coalesce(g.living_groups, 0) AS living_groups, g.members, g.lag_total, g.lag_unknown,
  coalesce(g.not_visible, 0) AS not_visible, coalesce(g.retention_unknown, 0) AS retention_unknown,
  coalesce(g.type_unknown, 0) AS type_unknown, coalesce(g.seen, 0) AS seen, coalesce(g.blocked, 0) AS blocked,
  coalesce(g.drifted, 0) AS drifted
FROM (SELECT cluster FROM rounds_current UNION SELECT cluster FROM clusters_current WHERE state = 'watched') AS w
LEFT JOIN rounds_current AS r ON r.cluster = w.cluster
LEFT JOIN (
  SELECT cluster, count(*) AS living_groups, CAST(sum(members) AS BIGINT) AS members,
    CAST(sum(lag_total) AS BIGINT) AS lag_total, CAST(sum(lag_unknown) AS BIGINT) AS lag_unknown,
    CAST(sum(CASE WHEN contains(to_json(findings), '{"finding":"topic_not_visible"') THEN 1 ELSE 0 END) AS BIGINT)
      AS not_visible,
    CAST(sum(CASE WHEN loses_data_reason = 'retention_unknown' THEN 1 ELSE 0 END) AS BIGINT) AS retention_unknown,
    CAST(sum(CASE WHEN group_type IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS type_unknown,
    CAST(sum(CASE WHEN source <> 'log' THEN 1 ELSE 0 END) AS BIGINT) AS seen,
    CAST(sum(CASE WHEN contains(to_json(findings), '{"finding":"offsets_blocked"') THEN 1 ELSE 0 END) AS BIGINT)
      AS blocked,
    CAST(sum(CASE WHEN verdict = 'drifted' THEN 1 ELSE 0 END) AS BIGINT) AS drifted
  FROM group_health_current
  GROUP BY cluster
) AS g ON g.cluster = w.cluster
ORDER BY w.cluster
