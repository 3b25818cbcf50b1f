-- How did the load of one group go over the last hours, in steps of some minutes?
--
-- Each row of the group carries the rates of the newest window that had ended; the last row of a step counts.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first moment
--   :until     TIMESTAMP  the end of the last step
--   :minutes   INT        length of a step; an hour is a multiple of it
-- Columns: one row per step in which the group has a row, the oldest first; the columns of group_health keep their names.
--   hour, step     the hour, and the number of the step in it
SELECT hour, step, produced_per_second, consumed_per_second, load_imbalance, load_imbalance_optimal_min,
  load_imbalance_optimal_max, imbalance, imbalance_optimal
FROM (
  SELECT *, date_trunc('hour', round_time) AS hour, CAST(floor(EXTRACT(MINUTE FROM round_time) / :minutes) AS INT) AS step,
    row_number() OVER (
      PARTITION BY date_trunc('hour', round_time), CAST(floor(EXTRACT(MINUTE FROM round_time) / :minutes) AS INT)
      ORDER BY round DESC
    ) AS newest
  FROM group_health
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
    AND round_time >= :since AND round_time < :until AND cluster = :cluster AND group_id = :group_id AND NOT ended
) AS seen
WHERE newest = 1
ORDER BY hour, step
