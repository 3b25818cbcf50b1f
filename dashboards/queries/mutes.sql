-- What is or will be muted? Mutes that nobody has lifted and that are not over, by the first time that each ends.
-- One that repeats is over a year after it began (`streaming/notes/book.py`).
--
-- Parameters:
--   :cluster  STRING     one cluster; NULL for all
--   :since    TIMESTAMP  mutes that were over before it are left out
-- Columns: one row per mute; the columns of the table mutes keep their names.
SELECT cluster, mute_id, kind, name, reason, made_by, from_time, until_time, repeat_ms
FROM mutes_current
WHERE (until_time >= :since OR (repeat_ms IS NOT NULL AND from_time + INTERVAL 366 DAY >= :since))
  AND kind IS NOT NULL AND name IS NOT NULL AND from_time IS NOT NULL AND until_time IS NOT NULL
  AND (:cluster IS NULL OR cluster = :cluster)
ORDER BY until_time, cluster, mute_id
