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
SELECT decision, record_time, incarnation, generation, strategy, expected_strategy, verdict, reason, matching_library,
  drifted_count, drifted_partitions
FROM drift_current
WHERE cluster = :cluster AND group_id = :group_id
