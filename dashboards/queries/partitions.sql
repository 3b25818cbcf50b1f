-- How far behind is each partition, and who owns it? The newest row of each partition of one group.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per partition; the columns of the table lag keep their names, and
--   topic      with its broker where it is RocketMQ's: orders@broker-a
SELECT concat_ws('@', topic, broker) AS topic, partition, lag, lag_status, reason, committed_offset, high_watermark,
  last_stable_offset, lag_read_committed, lost_records, oldest_unread_method, ahead_by, last_commit_time, subscribed,
  member_id, client_id, client_host, round_time, oldest_unread_time_min, oldest_unread_time_max, oldest_unread_reason,
  broker, subtopology, done_records, archived_records, rejected_records, given_up_records, released_records,
  delivery_count_max
FROM lag_current
WHERE cluster = :cluster AND group_id = :group_id
ORDER BY topic, partition
