-- What strategies would have done at the decisions of the period, where it is known.
--
-- Reads: what_if of the period.
-- Parameters: $cluster, $part, $parts (which part of the groups)
SELECT DISTINCT group_id, decision, strategy, coalesce(runs, false) AS runs, split_part(coalesce(library, ''), ':', 1) AS client,
  partitions_moved AS moved, imbalance
FROM what_if
WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND partitions_moved IS NOT NULL AND imbalance IS NOT NULL
ORDER BY group_id, decision, strategy
