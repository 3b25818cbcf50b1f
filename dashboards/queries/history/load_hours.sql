-- How did the load of one group go over days and months? By the growth of its partitions' offsets.
--
-- A partition has no row for an hour in which nothing happened to it. Offsets that grew while no round looked are left
-- out, and so is the time.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
--   :step      STRING     hour or day
-- Columns: one row per step in which something happened, the oldest first.
--   time                    beginning of the step
--   high_watermark_growth   records produced to its partitions, where that is known; NULL where it is for none
--   committed_offset_growth records consumed, likewise
SELECT date_trunc(:step, hour) AS time, CAST(sum(high_watermark_growth) AS BIGINT) AS high_watermark_growth,
  CAST(sum(committed_offset_growth) AS BIGINT) AS committed_offset_growth
FROM partition_hourly
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
  AND cluster = :cluster AND group_id = :group_id
GROUP BY 1
ORDER BY 1
