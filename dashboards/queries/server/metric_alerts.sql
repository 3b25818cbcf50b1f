-- What do metrics say of Evenkeel's own alerts?
--
-- Parameters: none.
-- Columns: one row per cluster, rule and severity with an alert that fires.
--   firing  number of alerts that fire
SELECT cluster, rule, severity, count(*) AS firing
FROM alerts_current
WHERE state = 'firing'
GROUP BY cluster, rule, severity
ORDER BY cluster, rule, severity
