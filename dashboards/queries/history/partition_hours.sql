-- Which partitions of a group lagged, and when? One value per partition and hour, for a heat map.
--
-- A partition has no row for an hour in which nothing happened to it: its lag was 0.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
-- Columns: one row per partition and hour; the columns of partition_hourly keep their names, and
--   lag_unknown_seconds  time in which the lag was not known
SELECT topic, broker, partition, hour, lag_max, lag_mean, observed_seconds - lag_known_seconds AS lag_unknown_seconds,
  lag_status_seconds, committed_offset_growth, high_watermark_growth, rewound_by_max, lost_records_max, commits
FROM partition_hourly
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
  AND cluster = :cluster AND group_id = :group_id
ORDER BY topic, broker, partition, hour
