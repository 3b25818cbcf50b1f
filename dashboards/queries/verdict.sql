-- Who should own what? The newest verdict on a decision of one group.
--
-- If it is identical, the expected owners are the actual ones; if it is drifted, they differ only in
-- drifted_partitions; otherwise they are unknown.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row, or none before the first verdict; the columns of the table drift keep their names. `decision`
-- names the judged one: members of a newer decision have not been judged yet, unless incarnation and generation are the
-- same (a static member came back under another id, which decides nothing).
SELECT decision, record_time, incarnation, generation, strategy, expected_strategy, verdict, basis,
  coalesce(own_verdict, verdict) AS own_verdict, reason,
  matching_library, nearest_library, nearest_differing,
  drifted_in_all AS drifted_count, all_drifted AS drifted_partitions
FROM (
  -- (A group that decides topic by topic has a verdict for each: the worst is the decision's. One of a topic that it
  -- has left is older.)
  SELECT *, row_number() OVER (PARTITION BY cluster, group_id ORDER BY CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END DESC, topic NULLS FIRST) AS place,
    CAST(sum(drifted_count) OVER (PARTITION BY cluster, group_id) AS INT) AS drifted_in_all,
    flatten(array_agg(drifted_partitions) OVER (PARTITION BY cluster, group_id ORDER BY topic NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS all_drifted
  FROM (SELECT *, max(decision) OVER (PARTITION BY cluster, group_id) AS newest FROM drift_current) AS d
  WHERE decision = newest
) AS v
WHERE place = 1 AND cluster = :cluster AND group_id = :group_id
