-- What did rebalances cost, group by group? Sums over the decisions of a time.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
-- Columns: one row per group with a decision in that time.
--   cluster, group_id                 the group
--   decisions, rebalances             decisions, and those of kind rebalance or migration
--   partitions_moved                  partitions that went from one owner to another, where that is known
--   moves_avoidable                   of these, those beyond the fewest possible, where both are known
--   unassigned_partition_seconds_min  lower bound of the time without an owner, summed over partitions
--   unassigned_partition_seconds_max  upper bound; NULL when one decision has none
--   partitions_stopped_unmoved        partitions that nobody read meanwhile although they kept their owner; where known
--   stopped_unknown                   rebalances of which that is not known
SELECT cluster, group_id, count(*) AS decisions, CAST(sum(is_rebalance) AS BIGINT) AS rebalances,
  CAST(sum(CASE WHEN is_rebalance = 1 THEN partitions_moved END) AS BIGINT) AS partitions_moved,
  CAST(sum(CASE WHEN is_rebalance = 1 THEN partitions_moved - partitions_moved_optimal END) AS BIGINT) AS moves_avoidable,
  sum(CASE WHEN is_rebalance = 1 THEN unassigned_partition_seconds_min END) AS unassigned_partition_seconds_min,
  CASE WHEN sum(CASE WHEN is_rebalance = 1 AND unassigned_partition_seconds_max IS NULL THEN 1 ELSE 0 END) = 0
    THEN sum(CASE WHEN is_rebalance = 1 THEN unassigned_partition_seconds_max END) END AS unassigned_partition_seconds_max,
  CAST(sum(CASE WHEN is_rebalance = 1 THEN partitions_stopped_unmoved END) AS BIGINT) AS partitions_stopped_unmoved,
  CAST(sum(CASE WHEN is_rebalance = 1 AND partitions_stopped_unmoved IS NULL THEN 1 ELSE 0 END) AS BIGINT)
    AS stopped_unknown
FROM (
  SELECT *, CASE WHEN kind IN ('rebalance', 'migration') THEN 1 ELSE 0 END AS is_rebalance
  FROM rebalance_churn_current
) AS decided
WHERE event_date >= CAST(:since AS DATE) AND record_time >= :since AND record_time < :until
  AND (:cluster IS NULL OR cluster = :cluster)
GROUP BY cluster, group_id
ORDER BY unassigned_partition_seconds_min DESC NULLS LAST, cluster, group_id
