-- Who is in the group? The members of its newest decision, each with its partitions.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per member; the columns of the table members keep their names.
SELECT member_id, group_instance_id, client_id, client_host, rack, leader, subscription, partition_count, partitions, tasks,
  undecodable, session_timeout_ms, rebalance_timeout_ms, incarnation, generation, decision, record_time
FROM members_current
WHERE cluster = :cluster AND group_id = :group_id
ORDER BY client_id, member_id
