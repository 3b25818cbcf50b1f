-- What do metrics say of each cluster's newest round?
--
-- Parameters: none.
-- Columns: one row per cluster; the columns of the table rounds keep their names.
SELECT cluster, cluster_id, round, round_time, closed_time, interval_ms, groups, log_partitions, held_partitions
FROM rounds_current
ORDER BY cluster
