-- Who is in the group? The members of its newest decision, with what each was given.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per member, those of the table members by their own names.
SELECT member_id, group_instance_id, client_id, client_host, rack, leader, subscription, partition_count, partitions,
  undecodable, incarnation, generation, decision, record_time
FROM members_current
WHERE cluster = :cluster AND group_id = :group_id
ORDER BY client_id, member_id
