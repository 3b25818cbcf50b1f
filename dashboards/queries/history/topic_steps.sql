-- How did one topic go? What was produced to it, its size, and its readers, in steps.
--
-- The probe looks at a topic once in a heartbeat.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :topic     STRING     the topic
--   :since     TIMESTAMP  the first moment
--   :until     TIMESTAMP  the end of the last step
--   :step      STRING     minute, hour or day
-- Columns: one row per step with a look, the oldest first; the columns of the table topics keep their names.
--   time                  beginning of the step
--   produced_per_second   mean where it is known; NULL where it never is
--   log_bytes             largest
--   records_max           largest
--   partitions, groups    most
--   offline_partitions    most
SELECT date_trunc(:step, round_time) AS time, avg(produced_per_second) AS produced_per_second, max(log_bytes) AS log_bytes,
  max(records_max) AS records_max, max(partitions) AS partitions, max(groups) AS groups,
  max(offline_partitions) AS offline_partitions
FROM topics
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
  AND round_time >= :since AND round_time < :until AND cluster = :cluster AND topic = :topic AND NOT ended
GROUP BY 1
ORDER BY 1
