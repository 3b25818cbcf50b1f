-- Which topics do groups read, and how far behind are these on each?
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :topic     STRING  one topic; NULL for all
-- Columns: one row per topic that a living group reads or has read.
--   cluster, topic  the topic
--   groups          groups with a row for one of its partitions
--   partitions      its partitions that a group has a row for; the topic can have more
--   lag_total       sum of the groups' lag where it is known; NULL where it never is
--   lag_max         largest lag of a group in one partition
--   lag_unknown     rows whose lag is not known
SELECT cluster, topic, count(DISTINCT group_id) AS groups, count(DISTINCT partition) AS partitions,
  CAST(sum(lag) AS BIGINT) AS lag_total, max(lag) AS lag_max, count(*) - count(lag) AS lag_unknown
FROM lag_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND (:topic IS NULL OR topic = :topic)
GROUP BY cluster, topic
ORDER BY cluster, topic
