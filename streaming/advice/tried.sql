-- What strategies would have done at the decisions of the period, where it is known.
--
-- Reads: what_if of the period.
-- Parameters: $cluster, $part, $parts (which part of the groups)
WITH
newest AS (
  -- (A decision that was judged again has rows of a later round, which replace the ones before.)
  SELECT group_id, decision, strategy, runs, library, partitions_moved, imbalance,
    row_number() OVER (PARTITION BY group_id, decision, strategy ORDER BY round DESC) AS age
  FROM what_if
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part
)
SELECT group_id, decision, strategy, coalesce(runs, false) AS runs, split_part(coalesce(library, ''), ':', 1) AS client,
  partitions_moved AS moved, imbalance
FROM newest
WHERE age = 1 AND partitions_moved IS NOT NULL AND imbalance IS NOT NULL
ORDER BY group_id, decision, strategy
