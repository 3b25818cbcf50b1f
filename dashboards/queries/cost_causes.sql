-- Why did groups rebalance, and how? Rebalances of a time by cause, and by rebalance protocol.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
-- Columns: one row per cause and per protocol that occurred.
--   kind        cause or protocol
--   name        the cause (docs/causes.md), or the protocol
--   rebalances  rebalances; one with several causes counts for each of them
-- Causes are searched in their JSON text. No name can imitate them there: its quotes would be escaped.
WITH words AS (
  SELECT 'cause' AS kind, 'migration' AS name
  UNION ALL SELECT 'cause', 'member_joined'
  UNION ALL SELECT 'cause', 'member_left'
  UNION ALL SELECT 'cause', 'member_silent'
  UNION ALL SELECT 'cause', 'member_gone'
  UNION ALL SELECT 'cause', 'static_replacement'
  UNION ALL SELECT 'cause', 'subscription_changed'
  UNION ALL SELECT 'cause', 'partitions_changed'
  UNION ALL SELECT 'cause', 'strategy_changed'
  UNION ALL SELECT 'cause', 'settings_changed'
  UNION ALL SELECT 'cause', 'handover'
  UNION ALL SELECT 'cause', 'rejoined'
  UNION ALL SELECT 'cause', 'coordinator_moved'
  UNION ALL SELECT 'cause', 'broker_down'
  UNION ALL SELECT 'cause', 'broker_up'
  UNION ALL SELECT 'cause', 'name_server_differs'
  UNION ALL SELECT 'cause', 'member_lists_changed'
  UNION ALL SELECT 'cause', 'settled'
  UNION ALL SELECT 'cause', 'unknown'
  UNION ALL SELECT 'protocol', 'eager'
  UNION ALL SELECT 'protocol', 'cooperative'
  UNION ALL SELECT 'protocol', 'consumer'
),
decisions AS (
  SELECT to_json(causes) AS causes, rebalance_protocol
  FROM rebalance_churn_current
  WHERE event_date >= CAST(:since AS DATE) AND record_time >= :since AND record_time < :until
    AND kind IN ('rebalance', 'migration')
    AND (:cluster IS NULL OR cluster = :cluster)
)
SELECT w.kind, w.name, count(*) AS rebalances
FROM words AS w
JOIN decisions AS d ON (w.kind = 'cause' AND contains(d.causes, concat('{"cause":"', w.name, '"')))
  OR (w.kind = 'protocol' AND d.rebalance_protocol = w.name)
GROUP BY w.kind, w.name
ORDER BY w.kind, rebalances DESC, w.name
