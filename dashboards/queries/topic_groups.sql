-- Who reads a topic, how fast, and how far behind? The groups with a committed offset of it, or a row of lag.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :topic     STRING  the topic
-- Columns: one row per group, the one that is furthest behind first.
--   cluster, group_id    the group
--   partitions           partitions of the topic that it has a row of lag for
--   members              members that own one of them
--   subscribed           whether it subscribes to the topic, or that is not known
--   lag_total, lag_max   sum of its lag where it is known, and the largest of one partition; NULL where it never is
--   lag_unknown          partitions whose lag is not known
--   consumed_per_second  sum where it is known; NULL where it is for none
--   oldest_unread_time   its oldest unread record was readable by then; NULL where nothing is unread or that is not known
SELECT cluster, group_id, count(*) AS partitions, count(DISTINCT member_id) AS members,
  max(CASE WHEN subscribed THEN 1 ELSE 0 END) = 1 AS subscribed,
  CAST(sum(lag) AS BIGINT) AS lag_total, max(lag) AS lag_max, count(*) - count(lag) AS lag_unknown,
  sum(consumed_per_second) AS consumed_per_second, min(oldest_unread_time_max) AS oldest_unread_time
FROM lag_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND topic = :topic
GROUP BY cluster, group_id
ORDER BY lag_total DESC NULLS LAST, group_id, cluster
