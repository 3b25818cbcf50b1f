-- Which groups changed? Every group over a time, beside the time before it: as last month, or before and after a deploy.
--
-- Whole days are compared. A group that was not there before, or is not there now, has NULL on that side.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :before    TIMESTAMP  the first day of the time before
--   :since     TIMESTAMP  the first day of the time, and the end of the time before
--   :until     TIMESTAMP  the day after the last one
-- Columns: one row per group, those that lag more than before first; of each time
--   observed_seconds   time in which the group was observed
--   lag_mean           mean of its total lag over the time for which it was known
--   lag_max            highest lag of one partition
--   drifted_seconds    time in which a drifted decision was in force
--   rebalances         rebalances
--   partitions_moved   partitions moved
--   those of the time before end in _before
WITH
days AS (
  SELECT cluster, group_id, event_date >= CAST(:since AS DATE) AS is_now, observed_seconds, lag_known_seconds,
    lag_total_mean * lag_known_seconds AS lag_sum, lag_max, drifted_seconds, rebalances, partitions_moved
  FROM group_daily
  WHERE event_date >= CAST(:before AS DATE) AND event_date < CAST(:until AS DATE)
    AND (:cluster IS NULL OR cluster = :cluster)
),
spans AS (
  SELECT cluster, group_id, is_now, sum(observed_seconds) AS observed_seconds,
    sum(lag_sum) / nullif(sum(lag_known_seconds), 0) AS lag_mean, max(lag_max) AS lag_max,
    sum(drifted_seconds) AS drifted_seconds, CAST(sum(rebalances) AS BIGINT) AS rebalances,
    CAST(sum(partitions_moved) AS BIGINT) AS partitions_moved
  FROM days
  GROUP BY cluster, group_id, is_now
)
SELECT coalesce(n.cluster, b.cluster) AS cluster, coalesce(n.group_id, b.group_id) AS group_id,
  n.observed_seconds, n.lag_mean, n.lag_max, n.drifted_seconds, n.rebalances, n.partitions_moved,
  b.observed_seconds AS observed_seconds_before, b.lag_mean AS lag_mean_before, b.lag_max AS lag_max_before,
  b.drifted_seconds AS drifted_seconds_before, b.rebalances AS rebalances_before,
  b.partitions_moved AS partitions_moved_before
FROM (SELECT * FROM spans WHERE is_now) AS n
FULL JOIN (SELECT * FROM spans WHERE NOT is_now) AS b ON n.cluster = b.cluster AND n.group_id = b.group_id
ORDER BY coalesce(n.lag_mean, 0) - coalesce(b.lag_mean, 0) DESC, 2, 1
