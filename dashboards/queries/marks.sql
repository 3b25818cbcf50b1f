-- What was done outside of Kafka? Marks of a time, the newest first.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :group_id  STRING     one group, with the marks of its whole cluster; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
--   :most      INT        most rows to return
-- Columns: one row per mark; the columns of the table marks keep their names.
SELECT cluster, mark_id, text, group_id, made_by, mark_time
FROM marks_current
WHERE mark_time >= :since AND mark_time <= :until AND (:cluster IS NULL OR cluster = :cluster)
  AND (:group_id IS NULL OR group_id IS NULL OR group_id = :group_id)
ORDER BY mark_time DESC, cluster, mark_id
LIMIT :most
