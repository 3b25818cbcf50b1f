-- What do metrics say of every partition of every living group?
--
-- Parameters: none.
-- Columns: one row per partition of a group; the columns of the table lag keep their names, and
--   topic           with its broker where it is RocketMQ's: orders@broker-a
--   is_read         the group subscribes to the topic, or nobody knows
--   has_commits     the group has committed something in the topic
--   unread_min, unread_max  bounds of the time when its oldest unread record could be read; newest_time where it has read all
--   newest_time     time of the cluster's newest round
SELECT l.cluster, l.group_id, concat_ws('@', l.topic, l.broker) AS topic, l.partition, l.committed_offset,
  l.high_watermark, l.log_start_offset, l.lag, l.reason, l.member_id, l.client_id, l.client_host, l.round,
  coalesce(l.subscribed, TRUE) AS is_read,
  count(l.committed_offset) OVER (PARTITION BY l.cluster, l.group_id, l.topic, l.broker) > 0 AS has_commits,
  CASE WHEN l.oldest_unread_reason = 'nothing_unread' THEN r.round_time ELSE l.oldest_unread_time_min END AS unread_min,
  CASE WHEN l.oldest_unread_reason = 'nothing_unread' THEN r.round_time ELSE l.oldest_unread_time_max END AS unread_max,
  r.round_time AS newest_time
FROM lag_current AS l
LEFT JOIN rounds_current AS r ON r.cluster = l.cluster
ORDER BY l.cluster, l.group_id, topic, l.partition
