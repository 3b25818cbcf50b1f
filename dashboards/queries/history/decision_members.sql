-- Who was in the group then? Its members as of one decision, each with its partitions.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
--   :decision  BIGINT  number of the decision
-- Columns: one row per member; the columns of the table members keep their names.
SELECT member_id, group_instance_id, client_id, client_host, rack, leader, subscription, partition_count, partitions, tasks,
  undecodable, session_timeout_ms, rebalance_timeout_ms, incarnation, generation, decision, record_time
FROM (
  SELECT *, row_number() OVER (PARTITION BY member_id ORDER BY decision DESC, repeat DESC) AS age
  FROM members
  WHERE cluster = :cluster AND group_id = :group_id AND decision <= :decision
) AS known
WHERE age = 1 AND NOT ended
ORDER BY client_id, member_id
