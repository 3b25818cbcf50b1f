-- What would other strategies have done then? Balance and moves of each strategy at one decision.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
--   :decision  BIGINT  number of the decision
-- Columns: one row per strategy; the columns of the table what_if keep their names.
SELECT strategy, runs, configured, library, partitions_moved, partitions_moved_optimal, imbalance, imbalance_optimal, load_imbalance,
  reason,
  decision, record_time, generation
FROM (
  SELECT *, row_number() OVER (PARTITION BY strategy ORDER BY round DESC) AS age
  FROM what_if
  WHERE cluster = :cluster AND group_id = :group_id AND decision = :decision
) AS known
WHERE age = 1
ORDER BY strategy
