-- Why did groups rebalance over weeks, and how? Rebalances by cause, and by rebalance protocol.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
-- Columns: those of cost_causes.sql. Rows of older releases, which lack causes, count for none.
-- Names and counts are searched in their JSON text: all names there are ours.
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
counted AS (
  SELECT to_json(rebalances_by_cause) AS causes, to_json(rebalances_by_protocol) AS protocols
  FROM group_hourly
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
    AND (:cluster IS NULL OR cluster = :cluster) AND rebalances > 0
),
found AS (
  SELECT w.kind, w.name,
    CAST(nullif(regexp_extract(CASE w.kind WHEN 'cause' THEN c.causes ELSE c.protocols END,
      concat('"name":"', w.name, '","count":([0-9]+)'), 1), '') AS BIGINT) AS rebalances
  FROM words AS w
  CROSS JOIN counted AS c
)
SELECT kind, name, CAST(sum(rebalances) AS BIGINT) AS rebalances
FROM found
WHERE rebalances > 0
GROUP BY kind, name
ORDER BY kind, rebalances DESC, name
