-- How far behind is each partition of each group, and who owns it?
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
--   :topic     STRING  one topic; NULL for all
--   :status    STRING  one lag_status; NULL for all
-- Columns: one row per partition of a group; the columns of the table lag keep their names, and
--   topic  with its broker where it is RocketMQ's: orders@broker-a
SELECT cluster, group_id, concat_ws('@', topic, broker) AS topic, partition, lag, lag_read_committed, lag_status, reason, committed_offset,
  high_watermark, last_stable_offset, log_start_offset, lost_records, ahead_by, last_commit_time, subscribed, member_id, client_id, client_host, oldest_unread_time_min,
  oldest_unread_time_max, oldest_unread_reason, round, round_time
FROM lag_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  AND (:topic IS NULL OR topic = :topic) AND (:status IS NULL OR lag_status = :status)
ORDER BY cluster, group_id, topic, partition
