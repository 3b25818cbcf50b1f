-- What did rebalances cost over months, group by group? Sums over whole days.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the first day
--   :until     TIMESTAMP  the end of the last day
-- Columns: one row per group with a decision in that time; those of cost.sql, and
--   newest  the newest day that the roll-ups have of the group
SELECT cluster, group_id, max(event_date) AS newest, CAST(sum(decisions) AS BIGINT) AS decisions,
  CAST(sum(rebalances) AS BIGINT) AS rebalances, CAST(sum(partitions_moved) AS BIGINT) AS partitions_moved,
  CAST(sum(partitions_moved_comparable - partitions_moved_optimal) AS BIGINT) AS moves_avoidable,
  sum(unassigned_partition_seconds_min) AS unassigned_partition_seconds_min,
  CASE WHEN sum(CASE WHEN rebalances > 0 AND unassigned_partition_seconds_max IS NULL THEN 1 ELSE 0 END) = 0
    THEN sum(unassigned_partition_seconds_max) END AS unassigned_partition_seconds_max,
  CAST(sum(partitions_stopped_unmoved) AS BIGINT) AS partitions_stopped_unmoved,
  CAST(sum(coalesce(partitions_stopped_unmoved_unknown, rebalances)) AS BIGINT) AS stopped_unknown
FROM group_daily
WHERE event_date >= CAST(:since AS DATE) AND event_date < CAST(:until AS DATE)
  AND (:cluster IS NULL OR cluster = :cluster)
GROUP BY cluster, group_id
HAVING sum(decisions) > 0
ORDER BY unassigned_partition_seconds_min DESC NULLS LAST, cluster, group_id
