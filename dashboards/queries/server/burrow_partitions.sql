-- How far behind is each partition of one group whose lag and last commit are known?
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per partition; the columns of the table lag keep their names, and
--   topic  with its broker where it is RocketMQ's: orders@broker-a
SELECT concat_ws('@', topic, broker) AS topic, partition, committed_offset, last_commit_time, lag, client_id,
  client_host, round_time
FROM lag_current
WHERE cluster = :cluster AND group_id = :group_id AND committed_offset IS NOT NULL AND last_commit_time IS NOT NULL
  AND lag IS NOT NULL
ORDER BY topic, partition
