-- How old is what the page shows? The newest round of each cluster.
--
-- Parameters: none.
-- Columns: one row per cluster.
--   cluster         its configured name
--   round           its number: what orders rounds
--   round_time      time of the newest closed round, by the broker's clock, UTC
--   interval_ms     from one round to the next, as the probe keeps it
--   groups          groups in that round
--   log_partitions  partitions of __consumer_offsets
--   held_partitions those that an open transaction holds back: lag of their groups is unknown
--   probe           id of the probe process
SELECT cluster, round, round_time, interval_ms, groups, log_partitions, held_partitions, probe
FROM rounds_current
ORDER BY cluster
