-- What do metrics say of every partition of every living group?
--
-- Parameters: none.
-- Columns: one row per partition of a group; the columns of the table lag keep their names, and
--   topic  with its broker where it is RocketMQ's: orders@broker-a
SELECT cluster, group_id, concat_ws('@', topic, broker) AS topic, partition, committed_offset, high_watermark, log_start_offset, lag, reason, subscribed,
  member_id, client_id, client_host, oldest_unread_time_min, oldest_unread_time_max, oldest_unread_reason, round
FROM lag_current
ORDER BY cluster, group_id, topic, partition
