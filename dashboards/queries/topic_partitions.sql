-- How is each partition of a topic, as the groups that read it show? Nothing is known here of a topic that no group reads.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :topic     STRING  the topic
-- Columns: one row per partition.
--   broker, partition     the partition
--   log_start_offset, high_watermark  the ends of its log, as far as a group's newest row has them
--   produced_per_second   offsets by which high_watermark grew per second; NULL where it is not known
--   groups                groups with a row of lag for it
--   lag_max               the largest lag of one of them; NULL where none is known
--   lag_unknown           groups whose lag there is not known
--   worst_group           the group with the largest lag, the first by name; NULL where none is known
SELECT broker, partition, max(log_start_offset) AS log_start_offset, max(high_watermark) AS high_watermark,
  max(produced_per_second) AS produced_per_second, count(DISTINCT group_id) AS groups, max(lag) AS lag_max,
  count(*) - count(lag) AS lag_unknown, min(CASE WHEN lag IS NOT NULL AND place = 1 THEN group_id END) AS worst_group
FROM (
  SELECT *, row_number() OVER (PARTITION BY broker, partition ORDER BY lag DESC NULLS LAST, group_id) AS place
  FROM lag_current
  WHERE (:cluster IS NULL OR cluster = :cluster) AND topic = :topic
) AS read
GROUP BY broker, partition
ORDER BY broker, partition
