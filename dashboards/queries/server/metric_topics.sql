-- What do metrics say of the topics of which no partition can be missing?
--
-- A group with members that subscribes to a topic has a row for each of its partitions; it has as many rows of partitions
-- as its own row counts. For a topic that is only committed to, the tables have only the partitions with commits.
--
-- Parameters: none.
-- Columns: one row per topic.
--   topic       with its broker where it is RocketMQ's: orders@broker-a
--   partitions  its partitions
--   ends, starts  sums of high watermarks and log starts; NULL unless all are known: half of a sum would look like a value
WITH places AS (
  SELECT cluster, group_id, concat_ws('@', topic, broker) AS topic, partition, log_start_offset, high_watermark,
    coalesce(subscribed, TRUE) AS is_read,
    row_number() OVER (PARTITION BY cluster, topic, broker, partition ORDER BY round DESC, group_id) AS place,
    sum(CASE WHEN subscribed = FALSE THEN 0 ELSE 1 END) OVER (PARTITION BY cluster, group_id) AS read_of_group
  FROM lag_current
),
whole AS (
  SELECT p.cluster, p.topic
  FROM places AS p
  JOIN group_health_current AS h ON h.cluster = p.cluster AND h.group_id = p.group_id
  WHERE h.members > 0
  GROUP BY p.cluster, p.topic, p.group_id
  HAVING min(h.partitions) = min(p.read_of_group) AND min(CASE WHEN p.is_read THEN 1 ELSE 0 END) = 1
)
SELECT cluster, topic, count(*) AS partitions,
  CASE WHEN count(high_watermark) = count(*) THEN CAST(sum(high_watermark) AS BIGINT) END AS ends,
  CASE WHEN count(log_start_offset) = count(*) THEN CAST(sum(log_start_offset) AS BIGINT) END AS starts
FROM places
WHERE place = 1 AND EXISTS (SELECT 1 FROM whole AS w WHERE w.cluster = places.cluster AND w.topic = places.topic)
GROUP BY cluster, topic
ORDER BY cluster, topic
