-- How much was produced to and consumed from each partition of one group over a time? By the roll-ups of whole hours.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
-- Columns: one row per partition to which something happened, the busiest first.
--   topic, broker, partition  the partition
--   high_watermark_growth     records produced; NULL where that is not known
--   committed_offset_growth   records consumed, likewise
--   newest                    its newest hour
SELECT topic, broker, partition, CAST(sum(high_watermark_growth) AS BIGINT) AS high_watermark_growth,
  CAST(sum(committed_offset_growth) AS BIGINT) AS committed_offset_growth, max(hour) AS newest
FROM partition_hourly
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
  AND cluster = :cluster AND group_id = :group_id
GROUP BY topic, broker, partition
ORDER BY high_watermark_growth DESC NULLS LAST, topic, broker, partition
