-- Who reads a topic, and how far behind is each? The groups with a committed offset of it.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :topic     STRING  the topic
-- Columns: one row per group.
--   cluster, group_id  the group
--   partitions         partitions of the topic that it has a row of lag for
--   lag_total          sum of its lag where it is known; NULL where it never is
--   lag_max            its largest lag in one partition
--   lag_unknown        partitions whose lag is not known
SELECT cluster, group_id, count(*) AS partitions, CAST(sum(lag) AS BIGINT) AS lag_total, max(lag) AS lag_max,
  count(*) - count(lag) AS lag_unknown
FROM lag_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND topic = :topic
GROUP BY cluster, group_id
ORDER BY cluster, group_id
