-- Which clusters are watched without a round yet? Nothing is known of them.
--
-- Parameters: none.
-- Columns: one row per cluster.
--   cluster       its configured name
--   written_time  since when it is watched, UTC
SELECT w.cluster, w.written_time
FROM clusters_current AS w
LEFT JOIN rounds_current AS r ON r.cluster = w.cluster
WHERE w.state = 'watched' AND r.cluster IS NULL
ORDER BY w.cluster
