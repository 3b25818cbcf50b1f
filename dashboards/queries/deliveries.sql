-- Which alerts were sent where, when, and with what result? Attempts in a time, the newest first.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :rule      STRING     one rule; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
--   :most      INT        most rows to return
-- Columns: one row per attempt, or decision not to send; the columns of alert_deliveries keep their names, and
--   group_id, severity, message  those of the alert; NULL when its transition is older than the tables that were read
WITH sent AS (
  SELECT cluster, target, rule, state, attempt, outcome, reason, duration_ms, attempt_time, transition_id, alert_id,
    incident
  FROM alert_deliveries
  WHERE event_date >= CAST(:since AS DATE) AND attempt_time >= :since AND attempt_time <= :until
    AND transition_id IS NOT NULL
    AND (:cluster IS NULL OR cluster = :cluster) AND (:rule IS NULL OR rule = :rule)
  ORDER BY attempt_time DESC, target, transition_id, attempt DESC
  LIMIT :most
)
SELECT s.cluster, s.target, s.rule, s.state, s.attempt, s.outcome, s.reason, s.duration_ms, s.attempt_time,
  s.transition_id, s.alert_id, s.incident, a.group_id, a.severity, a.message
FROM sent AS s
LEFT JOIN (
  SELECT transition_id, max(group_id) AS group_id, max(severity) AS severity, max(message) AS message
  FROM alerts
  WHERE event_date >= CAST(:since - INTERVAL 48 HOUR AS DATE)
  GROUP BY transition_id
) AS a ON a.transition_id = s.transition_id
ORDER BY s.attempt_time DESC, s.target, s.transition_id, s.attempt DESC
