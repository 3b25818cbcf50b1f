-- Which topics does the cluster have, what is produced to them, who reads them, and how far behind are these?
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :topic     STRING  one topic; NULL for all
-- Columns: one row per topic that the probe sees, or that a living group reads or has read; the columns of the table
-- topics keep their names, and are NULL for a topic without a row there (round_time too).
--   cluster, topic  the topic
--   groups          groups that read it, by that row or with a row of lag for one of its partitions
--   partitions      its partitions; without that row those that a group has a row of lag for
--   lag_total       sum of the groups' lag where it is known; NULL where it never is
--   lag_max         largest lag of a group in one partition
--   lag_unknown     rows of lag whose lag is not known
WITH
read AS (
  SELECT cluster, topic, count(DISTINCT group_id) AS groups,
    -- (Each broker of RocketMQ numbers its own; for Kafka, where broker is NULL, this is the number alone.)
    count(DISTINCT concat_ws('@', CAST(partition AS STRING), broker)) AS partitions,
    CAST(sum(lag) AS BIGINT) AS lag_total, max(lag) AS lag_max, count(*) - count(lag) AS lag_unknown
  FROM lag_current
  WHERE (:cluster IS NULL OR cluster = :cluster) AND (:topic IS NULL OR topic = :topic)
  GROUP BY cluster, topic
),
seen AS (
  SELECT cluster, topic, topic_id, round_time, groups, partitions, offline_partitions, records_max, produced_per_second,
    produced_reason, log_bytes, produced_bytes_per_second_min, bytes_reason, rates_over_seconds, readers,
    read_by_nobody, read_by_nobody_since, read_by_nobody_reason
  FROM topics_current
  WHERE (:cluster IS NULL OR cluster = :cluster) AND (:topic IS NULL OR topic = :topic)
)
SELECT cluster, topic, greatest(coalesce(read.groups, 0), coalesce(seen.groups, 0)) AS groups,
  coalesce(seen.partitions, read.partitions) AS partitions, lag_total, lag_max, coalesce(lag_unknown, 0) AS lag_unknown,
  topic_id, round_time, offline_partitions, records_max, produced_per_second, produced_reason, log_bytes,
  produced_bytes_per_second_min, bytes_reason, rates_over_seconds, readers, read_by_nobody, read_by_nobody_since,
  read_by_nobody_reason
FROM read FULL OUTER JOIN seen USING (cluster, topic)
ORDER BY cluster, topic
