-- What do metrics say of every topic of every living group, and of all its topics together?
--
-- Parameters: none.
-- Columns: one row per group and topic, and one per group whose topic is ''.
--   topic          with its broker where it is RocketMQ's: orders@broker-a
--   lag, committed sums where they are known; NULL where none is
--   lag_max        the largest lag of a partition
--   members        members that own a partition; NULL for none
--   assigned       partitions that a member owns; NULL for none
--   unread_max     the latest that its oldest unread record can have become readable, of partitions with a known lag; newest_time
--                  where all is read
--   read_lag, read_unknown, read_unread_max  the same lag, partitions without a known one, and the same time, of what the
--                  group subscribes to; NULL where it subscribes to none
--   has_commits    the group has committed something there
--   newest_time    time of the cluster's newest round
WITH places AS (
  SELECT l.cluster, l.group_id, concat_ws('@', l.topic, l.broker) AS topic, l.lag, l.committed_offset, l.member_id,
    coalesce(l.subscribed, TRUE) AS is_read, r.round_time AS newest_time,
    CASE WHEN l.oldest_unread_reason = 'nothing_unread' THEN r.round_time ELSE l.oldest_unread_time_max END AS unread
  FROM lag_current AS l
  JOIN rounds_current AS r ON r.cluster = l.cluster
),
owned AS (
  -- (First by owner: to count the distinct owners of a million partitions costs as much as all the rest.)
  SELECT cluster, group_id, topic, member_id, sum(lag) AS lag, max(lag) AS lag_max, sum(committed_offset) AS committed,
    count(member_id) AS assigned, min(CASE WHEN lag IS NOT NULL THEN unread END) AS unread_max,
    sum(CASE WHEN is_read THEN lag END) AS read_lag,
    sum(CASE WHEN is_read THEN CASE WHEN lag IS NULL THEN 1 ELSE 0 END END) AS read_unknown,
    min(CASE WHEN is_read THEN unread END) AS read_unread_max, count(committed_offset) AS commits,
    max(newest_time) AS newest_time
  FROM places
  GROUP BY cluster, group_id, topic, member_id
)
SELECT cluster, group_id, coalesce(topic, '') AS topic, CAST(sum(lag) AS BIGINT) AS lag, max(lag_max) AS lag_max,
  CAST(sum(committed) AS BIGINT) AS committed, nullif(count(DISTINCT member_id), 0) AS members,
  nullif(CAST(sum(assigned) AS BIGINT), 0) AS assigned, min(unread_max) AS unread_max,
  CAST(sum(read_lag) AS BIGINT) AS read_lag, CAST(sum(read_unknown) AS BIGINT) AS read_unknown,
  min(read_unread_max) AS read_unread_max, sum(commits) > 0 AS has_commits, max(newest_time) AS newest_time
FROM owned
GROUP BY GROUPING SETS ((cluster, group_id, topic), (cluster, group_id))
ORDER BY cluster, group_id, topic
