-- What fired, and when was it over? Alerts that fired or ended in a time, the newest first.
--
-- An alert that was only pending is left out: nobody heard of it. What fired before the time and still fires is in
-- alert_states.sql.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :rule      STRING     one rule; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
--   :most      INT        most rows to return
-- Columns: one row per alert, from its beginning to its end; the columns of the table alerts keep their names, and
--   fired_time   when it fired; NULL when that was before the time
--   ended_time   when it ended; NULL while it fires, and when that was after the time
--   outcome      resolved or gone; NULL without ended_time
--   late         whether its firing or its end was found late
WITH told AS (
  SELECT cluster, alert_id, rule, severity, group_id, topic, partition, entity, state, ended, since, late, message,
    coalesce(round_time, decided_time) AS time
  FROM alerts
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
    AND (state = 'firing' OR (ended AND from_state = 'firing'))
    AND (:cluster IS NULL OR cluster = :cluster) AND (:rule IS NULL OR rule = :rule)
)
SELECT cluster, alert_id, max(rule) AS rule, max(severity) AS severity, max(group_id) AS group_id, max(topic) AS topic,
  max(partition) AS partition, max(entity) AS entity, min(since) AS since,
  min(CASE WHEN state = 'firing' THEN time END) AS fired_time,
  max(CASE WHEN ended THEN time END) AS ended_time,
  max(CASE WHEN ended THEN state END) AS outcome,
  max(CASE WHEN late THEN 1 ELSE 0 END) = 1 AS late,
  coalesce(max(CASE WHEN state = 'firing' THEN message END), max(message)) AS message
FROM told
WHERE time >= :since AND time <= :until
GROUP BY cluster, alert_id
ORDER BY max(time) DESC, cluster, alert_id
LIMIT :most
