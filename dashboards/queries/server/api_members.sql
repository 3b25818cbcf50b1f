-- Who is in the groups? The members of each group's newest decision, each with its partitions.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
-- Columns: one row per member; the columns of the table members keep their names.
SELECT cluster, group_id, member_id, group_instance_id, client_id, client_host, rack, leader, subscription,
  partition_count, partitions, undecodable, generation, decision, record_time
FROM members_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
ORDER BY cluster, group_id, member_id
