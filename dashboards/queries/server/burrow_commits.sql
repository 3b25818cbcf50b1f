-- The last ten commits of each partition of one group, one a round at the most, of the time that is held in memory.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per commit, by topic and partition, the oldest first.
--   topic, partition  the partition
--   committed_offset  the offset
--   last_commit_time  its time
--   lag               lag at the round that saw it
--   round_time        time of that round
SELECT topic, partition, committed_offset, last_commit_time, lag, round_time
FROM (
  SELECT topic, partition, committed_offset, last_commit_time, lag, round_time, round,
    row_number() OVER (PARTITION BY topic, partition ORDER BY round DESC) AS age
  FROM (
    SELECT concat_ws('@', topic, broker) AS topic, partition, committed_offset, last_commit_time, lag, round_time, round,
      row_number() OVER (PARTITION BY lag.topic, broker, partition, last_commit_time ORDER BY round) AS repeated
    FROM lag
    WHERE cluster = :cluster AND group_id = :group_id AND NOT ended AND committed_offset IS NOT NULL
      AND last_commit_time IS NOT NULL
  ) AS seen
  WHERE repeated = 1
) AS aged
WHERE age <= 10
ORDER BY topic, partition, round
