-- What is muted? Mutes that nobody has lifted, also those that ended by themselves lately; the next to end first.
--
-- Parameters:
--   :cluster  STRING     one cluster; NULL for all
--   :since    TIMESTAMP  mutes that ended before it are left out
-- Columns: one row per mute; the columns of the table mutes keep their names.
SELECT cluster, mute_id, kind, name, reason, made_by, from_time, until_time, repeat_ms
FROM mutes_current
WHERE (until_time >= :since OR repeat_ms IS NOT NULL) AND (:cluster IS NULL OR cluster = :cluster)
ORDER BY until_time, cluster, mute_id
