-- What was produced to the partitions that a group reads, and the partition that got most.
--
-- Reads: partition_hourly of the period.
-- Parameters: $cluster, $part, $parts (which part of the groups)
WITH
sums AS (
  SELECT group_id, topic, partition, sum(high_watermark_growth)::BIGINT AS records,
    count(*) FILTER (high_watermark_growth > 0) AS hours
  FROM partition_hourly
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND high_watermark_growth > 0
  GROUP BY ALL
),
ranked AS (
  SELECT *, sum(records) OVER (PARTITION BY group_id)::BIGINT AS total,
    row_number() OVER (PARTITION BY group_id ORDER BY records DESC, topic, partition) AS place
  FROM sums
)
SELECT group_id, total, topic, partition, records AS most, hours FROM ranked WHERE place = 1
