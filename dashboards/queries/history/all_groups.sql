-- How were all groups together, day by day? The sums that a capacity plan or a monthly report begins with.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  a time of the first day
--   :until     TIMESTAMP  a time of the last day
-- Columns: one row per day, the oldest first.
--   groups            groups that were observed
--   lag_mean          sum over the groups of their mean lag
--   lag_max           highest lag of one partition
--   drifted_groups    groups that had a drifted decision in force for some time
--   drifted_seconds   that time, summed over the groups
--   rebalances        rebalances
--   partitions_moved  partitions moved
SELECT event_date, count(*) AS groups, sum(lag_total_mean) AS lag_mean, max(lag_max) AS lag_max,
  CAST(sum(CASE WHEN drifted_seconds > 0 THEN 1 ELSE 0 END) AS BIGINT) AS drifted_groups, sum(drifted_seconds) AS drifted_seconds,
  CAST(sum(rebalances) AS BIGINT) AS rebalances, CAST(sum(partitions_moved) AS BIGINT) AS partitions_moved
FROM group_daily
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
  AND (:cluster IS NULL OR cluster = :cluster)
GROUP BY event_date
ORDER BY event_date
