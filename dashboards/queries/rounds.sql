-- How fresh is the page? The newest round of each cluster.
--
-- Parameters: none.
-- Columns: one row per cluster.
--   cluster         its configured name
--   round           its number; rounds are ordered by it
--   round_time      time of the newest closed round, by the broker's clock, UTC
--   interval_ms     how often rounds come, ms; longer while nothing moves
--   groups          groups in that round
--   log_partitions  partitions of __consumer_offsets
--   held_partitions those blocked by an open transaction: the lag of their groups is unknown
--   probe           id of the probe process
SELECT cluster, round, round_time, interval_ms, groups, log_partitions, held_partitions, probe
FROM rounds_current
ORDER BY cluster
