-- How far behind was each partition then? The newest row of each partition of one group at one time.
--
-- A living partition has a row at each heartbeat: rows that are older than half an hour are of partitions that were gone.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :at        TIMESTAMP  the time
-- Columns: one row per partition; the columns of the table lag keep their names.
SELECT concat_ws('@', topic, broker) AS topic, partition, lag, lag_status, reason, committed_offset, high_watermark,
  last_stable_offset, lag_read_committed, lost_records, oldest_unread_method, ahead_by, subscribed, member_id,
  round_time, subtopology
FROM (
  SELECT *, row_number() OVER (PARTITION BY topic, broker, partition ORDER BY round DESC) AS age
  FROM lag
  WHERE event_date >= CAST(:at - INTERVAL 30 MINUTE AS DATE) AND event_date <= CAST(:at AS DATE)
    AND round_time > :at - INTERVAL 30 MINUTE AND round_time <= :at
    AND cluster = :cluster AND group_id = :group_id
) AS known
WHERE age = 1 AND NOT ended
ORDER BY topic, partition
