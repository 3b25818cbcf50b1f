-- In which groups does a text occur? By group id, topic, client id or host; capitals and small letters are the same.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :text      STRING  the text, in small letters
-- Columns: one row per group and place where the text was found.
--   cluster, group_id  the group
--   place              group, topic, client or host
--   found              the first name there that contains it
SELECT cluster, group_id, place, min(name) AS found
FROM (
  SELECT cluster, group_id, 'group' AS place, group_id AS name FROM group_health_current
  UNION ALL
  SELECT cluster, group_id, 'topic' AS place, topic AS name FROM lag_current
  UNION ALL
  SELECT cluster, group_id, 'client' AS place, client_id AS name FROM members_current
  UNION ALL
  SELECT cluster, group_id, 'host' AS place, client_host AS name FROM members_current
) AS names
WHERE (:cluster IS NULL OR cluster = :cluster) AND contains(lower(name), :text)
GROUP BY cluster, group_id, place
ORDER BY cluster, group_id, place
