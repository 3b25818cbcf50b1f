-- How much is produced to and consumed from each partition, and who owns it? One group.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per partition, the busiest first; the columns of the table lag keep their names.
SELECT topic, broker, partition, produced_per_second, consumed_per_second, lag, subscribed, member_id, client_id
FROM lag_current
WHERE cluster = :cluster AND group_id = :group_id
ORDER BY produced_per_second DESC NULLS LAST, topic, broker, partition
