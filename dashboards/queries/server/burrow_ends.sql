-- The end offsets of each partition of one group in its last rounds.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  beginning of these rounds
-- Columns: one row per partition and round with a change since then, and the newest before it.
--   topic, partition  the partition
--   high_watermark    its end
SELECT topic, partition, high_watermark
FROM (
  SELECT concat_ws('@', topic, broker) AS topic, partition, high_watermark, round_time,
    lead(round_time) OVER (PARTITION BY lag.topic, broker, partition ORDER BY round) AS replaced
  FROM lag
  WHERE cluster = :cluster AND group_id = :group_id AND NOT ended AND high_watermark IS NOT NULL
) AS seen
WHERE replaced IS NULL OR replaced > :since
ORDER BY topic, partition, round_time
