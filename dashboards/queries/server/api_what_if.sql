-- What would other strategies have done? Balance and moves of each strategy at each group's newest decision.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
-- Columns: one row per group and strategy; the columns of the table what_if keep their names.
SELECT cluster, group_id, strategy, runs, configured, library, partitions_moved, partitions_moved_optimal, imbalance,
  imbalance_optimal, reason, decision, record_time, generation
FROM (
  SELECT cluster, group_id, strategy, runs, configured, library, partitions_moved, partitions_moved_optimal, imbalance,
    imbalance_optimal, reason, decision, record_time, generation,
    rank() OVER (PARTITION BY cluster, group_id ORDER BY round DESC, decision DESC) AS place
  FROM what_if_current
  WHERE (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
) AS known
WHERE place = 1
ORDER BY cluster, group_id, strategy
