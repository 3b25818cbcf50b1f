-- What do metrics say of each cluster at its newest round?
--
-- Parameters: none.
-- Columns: one row per cluster; the columns of the table rounds keep their names, and
--   interval_seconds  interval_ms, in seconds
--   undecoded         records that could not be decoded
--   gaps              ranges that were deleted before we read them
SELECT r.cluster, r.cluster_id, r.round, r.round_time, r.closed_time, r.interval_ms, r.interval_ms / 1000 AS interval_seconds,
  r.groups, r.log_partitions, r.held_partitions, coalesce(q.records, 0) AS undecoded, coalesce(g.ranges, 0) AS gaps
FROM rounds_current AS r
LEFT JOIN (SELECT cluster, CAST(sum(records) AS BIGINT) AS records FROM quarantine_current GROUP BY cluster) AS q
  ON q.cluster = r.cluster
LEFT JOIN (SELECT cluster, count(*) AS ranges FROM gaps_current WHERE kind <> 'state' GROUP BY cluster) AS g
  ON g.cluster = r.cluster
ORDER BY r.cluster
