-- What is firing now? The alerts that have fired and are not resolved, the gravest and newest first.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
-- Columns: one row per alert; the columns of the table alerts keep their names.
SELECT cluster, rule, severity, group_id, topic, partition, state, since, round_time, value, message, alert_id
FROM alerts_current
WHERE state = 'firing' AND (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
ORDER BY CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, since DESC, rule, group_id NULLS LAST,
  topic NULLS LAST, partition NULLS LAST, cluster
