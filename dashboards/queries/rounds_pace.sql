-- How did rounds go? Pace and size of the rounds of a time.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  how far to look back
-- Columns: one row per cluster with a round; those that are not known of any round are NULL.
--   rounds                      how many there were
--   step_median, step_max       time from one to the next
--   closing_median, closing_max time from a round's opening until all its events were acknowledged
--   events_median               number of events of one
--   log_records                 records of the offsets log in all of them
SELECT cluster, count(*) AS rounds, median(step) AS step_median, max(step) AS step_max,
  median(closed_time - round_time) AS closing_median, max(closed_time - round_time) AS closing_max,
  median(events) AS events_median, CAST(sum(log_records) AS BIGINT) AS log_records
FROM (
  SELECT *, round_time - lag(round_time) OVER (PARTITION BY cluster ORDER BY round) AS step
  FROM rounds
  WHERE event_date >= CAST(:since AS DATE) AND round_time >= :since AND (:cluster IS NULL OR cluster = :cluster)
) AS each
GROUP BY cluster
ORDER BY cluster
