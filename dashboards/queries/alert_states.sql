-- What is true now that a rule asks about? Alerts that are pending or firing, the gravest and newest first.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :rule      STRING  one rule; NULL for all
-- Columns: one row per alert; the columns of the table alerts keep their names.
SELECT cluster, rule, severity, group_id, topic, partition, state, since, round_time, late, value, message, alert_id, entity, labels
FROM alerts_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND (:rule IS NULL OR rule = :rule)
ORDER BY CASE state WHEN 'firing' THEN 0 ELSE 1 END,
  CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, since DESC, rule, group_id NULLS LAST,
  topic NULLS LAST, partition NULLS LAST, cluster
