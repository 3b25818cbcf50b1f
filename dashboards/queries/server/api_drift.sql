-- Who should own what? The newest verdict of each group.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
--   :verdict   STRING  one verdict; NULL for all
-- Columns: one row per group with a verdict; the columns of the table drift keep their names.
SELECT cluster, group_id, decision, record_time, generation, strategy, expected_strategy, verdict, reason,
  matching_library, drifted_count, drifted_partitions
FROM drift_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  AND (:verdict IS NULL OR verdict = :verdict)
ORDER BY cluster, group_id
