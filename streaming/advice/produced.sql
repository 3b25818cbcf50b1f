-- What was produced to the partitions that a group reads, and the partition that got most.
--
-- A topic that the group has left keeps its committed offsets for days, so topics count that the members of the newest
-- decision subscribe to or own. Where the period has no decision, or one of them cannot be decoded, all count, but only a
-- partition is named that a member certainly owned at the end of the day: one in hot_partitions of its last row of
-- group_health. (Each RocketMQ broker counts its queues from 0; hot_partitions names a queue's topic as t@broker-a.)
--
-- Reads: partition_hourly and members of the period, group_health of its last day.
-- Parameters: $cluster, $part, $parts (which part of the groups)
WITH
newest AS (
  SELECT group_id, max(decision) AS decision FROM members
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND NOT ended GROUP BY group_id
),
subscribed AS (
  SELECT group_id, bool_and(subscription IS NOT NULL) AS known,
    flatten(list(list_concat(subscription, [one.topic for one in partitions]))) AS topics
  FROM members SEMI JOIN newest USING (group_id, decision)
  WHERE cluster = $cluster AND NOT ended
  GROUP BY group_id
),
owned AS (
  SELECT group_id, arg_max_null(list_transform(hot_partitions, lambda h: h.topic || '-' || h.partition), round) AS hot
  FROM group_health
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part
  GROUP BY group_id
),
sums AS (
  SELECT group_id, topic, broker, partition,
    known IS TRUE OR list_contains(hot, topic || coalesce('@' || broker, '') || '-' || partition) AS certain,
    sum(high_watermark_growth)::BIGINT AS records, count(*) FILTER (high_watermark_growth > 0) AS hours
  FROM partition_hourly LEFT JOIN subscribed USING (group_id) LEFT JOIN owned USING (group_id)
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND high_watermark_growth > 0
    AND (known IS NOT TRUE OR list_contains(topics, topic))
  GROUP BY ALL
),
summed AS (SELECT *, sum(records) OVER (PARTITION BY group_id)::BIGINT AS total FROM sums),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY group_id ORDER BY records DESC, topic, broker, partition) AS place
  FROM summed
  WHERE certain
)
SELECT group_id, total, topic, broker, partition, records AS most, hours FROM ranked WHERE place = 1
