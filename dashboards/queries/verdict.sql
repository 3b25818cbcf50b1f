-- Who should own what? The newest verdict on a decision of one group.
--
-- Where it is identical, the expected owners are the actual ones; where it is drifted, they differ in
-- drifted_partitions and nowhere else; where it is neither, they are not known.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row, or none when nothing was judged yet; those of the table drift by their own names. The
-- column decision tells which one: members of a newer one have not been judged yet, unless incarnation and generation
-- are the same (a static member came back under another id, which decides nothing).
SELECT decision, record_time, incarnation, generation, strategy, expected_strategy, verdict, reason, matching_library,
  drifted_count, drifted_partitions
FROM drift_current
WHERE cluster = :cluster AND group_id = :group_id
