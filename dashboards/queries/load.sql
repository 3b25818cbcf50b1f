-- How much is produced and consumed in each group, and does it lie evenly on the members?
--
-- Every living group, those first whose load another assignment would even out most.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
-- Columns: one row per group; the columns of group_health keep their names, and
--   avoidable        load_imbalance that an assignment is known to avoid: 0 if none is; NULL where it is not known
SELECT cluster, group_id, round_time, members, partitions, topics, assigned_partitions, lag_total,
  produced_per_second, consumed_per_second,
  imbalance, imbalance_optimal, load_imbalance, load_imbalance_optimal_min, load_imbalance_optimal_max,
  hot_partitions,
  CASE WHEN load_imbalance IS NOT NULL AND load_imbalance_optimal_max IS NOT NULL
    THEN greatest(load_imbalance - load_imbalance_optimal_max, 0) END AS avoidable
FROM group_health_current
WHERE (:cluster IS NULL OR cluster = :cluster)
ORDER BY avoidable DESC NULLS LAST, produced_per_second DESC NULLS LAST, group_id, cluster
