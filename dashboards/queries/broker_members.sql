-- What does each broker of RocketMQ say of a group's members? The newest list of each.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per broker address, none for Kafka's groups; the columns of broker_members keep their names.
SELECT broker, broker_id, address, answer, reason, connections, missing, duplicated, broker_version, consume_enabled,
  clients, consume_type, message_model, consume_from, subscription,
  round_time
FROM broker_members_current
WHERE cluster = :cluster AND group_id = :group_id
ORDER BY broker, broker_id, address
