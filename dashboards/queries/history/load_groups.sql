-- How much was produced and consumed in each group over a time? By the roll-ups of whole hours.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
-- Columns: one row per group to whose partitions something happened.
--   cluster, group_id         the group
--   high_watermark_growth     records produced to its partitions, where that is known; NULL where it is for none
--   committed_offset_growth   records consumed, likewise
--   newest                    its newest hour
SELECT cluster, group_id, CAST(sum(high_watermark_growth) AS BIGINT) AS high_watermark_growth,
  CAST(sum(committed_offset_growth) AS BIGINT) AS committed_offset_growth, max(hour) AS newest
FROM partition_hourly
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
  AND (:cluster IS NULL OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY cluster, group_id
