-- In which groups does a text occur? By group id, topic, client id or host; capitals and small letters are the same.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :text      STRING  the text, in small letters
-- Columns: one row per group.
--   cluster, group_id  the group
SELECT DISTINCT cluster, group_id
FROM (
  SELECT cluster, group_id, group_id AS name FROM group_health_current
  UNION ALL
  SELECT cluster, group_id, topic AS name FROM lag_current
  UNION ALL
  SELECT cluster, group_id, client_id AS name FROM members_current
  UNION ALL
  SELECT cluster, group_id, client_host AS name FROM members_current
) AS names
WHERE (:cluster IS NULL OR cluster = :cluster) AND contains(lower(name), :text)
ORDER BY cluster, group_id
