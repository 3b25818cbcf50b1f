-- Which groups have committed, and for which topics? A lag that is unknown for a time takes none away.
--
-- Parameters:
--   :cluster  STRING  the cluster
-- Columns: one row per group and topic.
--   topic  with its broker where it is RocketMQ's: orders@broker-a
SELECT DISTINCT group_id, concat_ws('@', topic, broker) AS topic
FROM lag_current
WHERE cluster = :cluster AND committed_offset IS NOT NULL AND last_commit_time IS NOT NULL
ORDER BY group_id, topic
