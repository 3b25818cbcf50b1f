-- What has a target not been told yet? Decided transitions without a final outcome, the oldest first.
--
-- Nothing is sent to a target that was taken out of the settings, so what it is owed here stays owed for `since`.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :rule      STRING     one rule; NULL for all
--   :since     TIMESTAMP  how far to look back
--   :most      INT        most rows to return
-- Columns: one row per transition and target.
--   cluster, target                           the cluster and the name of the target
--   rule, severity, state, group_id, message  those of the transition
--   decided_time      when the alerter decided it
--   attempt, attempt_time, reason             the last attempt, or what holds it back; NULL when there was neither
WITH known AS (
  SELECT cluster, target, min(attempt_time) AS added_time
  FROM alert_deliveries_current
  WHERE outcome = 'added'
  GROUP BY cluster, target
)
SELECT t.cluster, t.target, a.rule, a.severity, a.state, a.group_id, a.message, a.decided_time, d.attempt,
  d.attempt_time, d.reason
FROM alerts AS a
JOIN known AS t ON t.cluster = a.cluster AND a.decided_time >= t.added_time
LEFT JOIN alert_deliveries_current AS d ON d.transition_id = a.transition_id AND d.target = t.target
WHERE a.decided_time >= :since AND a.state <> 'pending' AND NOT (a.ended AND a.from_state = 'pending')
  AND (d.outcome IS NULL OR d.outcome IN ('failed', 'held'))
  AND (:cluster IS NULL OR a.cluster = :cluster) AND (:rule IS NULL OR a.rule = :rule)
ORDER BY a.decided_time, t.target, a.rule, a.transition_id
LIMIT :most
