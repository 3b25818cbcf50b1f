-- Who should own what? The newest verdict of each group.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
--   :verdict   STRING  one verdict; NULL for all
-- Columns: one row per group with a verdict; the columns of the table drift keep their names.
SELECT cluster, group_id, decision, record_time, generation, strategy, expected_strategy, configuration_version, verdict, basis,
  own_verdict, reason, matching_library, nearest_library, nearest_differing, drifted_in_all AS drifted_count, all_drifted AS drifted_partitions
FROM (
  -- (A group that decides topic by topic has a verdict for each: the worst is the decision's. One of a topic that it
  -- has left is older.)
  SELECT *, row_number() OVER (PARTITION BY cluster, group_id ORDER BY CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END DESC, topic NULLS FIRST) AS place,
    CAST(sum(drifted_count) OVER (PARTITION BY cluster, group_id) AS INT) AS drifted_in_all,
    flatten(array_agg(drifted_partitions) OVER (PARTITION BY cluster, group_id ORDER BY topic NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS all_drifted
  FROM (SELECT *, max(decision) OVER (PARTITION BY cluster, group_id) AS newest FROM drift_current) AS d
  WHERE decision = newest
) AS v
WHERE place = 1 AND (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  AND (:verdict IS NULL OR verdict = :verdict)
ORDER BY cluster, group_id
