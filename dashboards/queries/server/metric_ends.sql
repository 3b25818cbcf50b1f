-- Where does each partition begin and end, by the newest row of any group?
--
-- Parameters: none.
-- Columns: one row per partition.
--   topic  with its broker where it is RocketMQ's: orders@broker-a
--   log_start_offset, high_watermark  as in the table lag; NULL where not known
SELECT cluster, topic, partition, log_start_offset, high_watermark
FROM (
  SELECT cluster, concat_ws('@', topic, broker) AS topic, partition, log_start_offset, high_watermark,
    row_number() OVER (PARTITION BY cluster, topic, broker, partition ORDER BY round DESC, group_id) AS place
  FROM lag_current
) AS l
WHERE place = 1
ORDER BY cluster, topic, partition
