-- What would other strategies have done? Balance and moves of each strategy at the newest decision of one group.
--
-- A decision that was too large, or could not be read, has only a row for the strategy that runs, with the reason.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per strategy; the columns of the table what_if keep their names. `decision` names the decision;
-- an even newer one may still wait for its verdict.
SELECT strategy, runs, configured, library, partitions_moved, partitions_moved_optimal, imbalance, imbalance_optimal, load_imbalance,
  reason, decision, record_time,
  generation
FROM (
  SELECT strategy, runs, configured, library, partitions_moved, partitions_moved_optimal, imbalance, imbalance_optimal, load_imbalance,
  reason, decision, record_time,
    generation, rank() OVER (ORDER BY round DESC, decision DESC) AS place
  FROM what_if_current
  WHERE cluster = :cluster AND group_id = :group_id
) AS known
WHERE place = 1
ORDER BY strategy
