-- What would other strategies have done? Balance and moves by each strategy at the newest decision of one group.
--
-- Of a decision that was too large, or could not be read, there is the strategy that runs alone, with the reason.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per strategy, those of the table what_if by their own names. The column decision tells
-- which one: the newest may wait for its verdict.
SELECT strategy, runs, library, partitions_moved, partitions_moved_optimal, imbalance, imbalance_optimal, reason, decision, record_time,
  generation
FROM (
  SELECT strategy, runs, library, partitions_moved, partitions_moved_optimal, imbalance, imbalance_optimal, reason, decision, record_time,
    generation, rank() OVER (ORDER BY round DESC, decision DESC) AS place
  FROM what_if_current
  WHERE cluster = :cluster AND group_id = :group_id
) AS known
WHERE place = 1
ORDER BY strategy
