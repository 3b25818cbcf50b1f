-- How was one group, hour by hour? Lag, verdicts, rebalances and what they cost. Hours without rounds have no row.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
-- Columns: one row per hour, the oldest first; the columns of group_hourly keep their names, and
--   lag_unknown_seconds  time in which the lag was not known
--   moves_avoidable      partitions moved beyond the fewest possible, in decisions where both are known
SELECT hour, observed_seconds, lag_total_max, lag_total_mean, lag_max,
  observed_seconds - lag_known_seconds AS lag_unknown_seconds, commits, members_min, members_max, members_mean,
  members_known_seconds, members_beyond_partitions_seconds, members_beyond_partitions_max, imbalance_mean,
  imbalance_optimal_mean, imbalance_max, state_seconds, verdict_seconds, lag_status_seconds, finding_seconds,
  lost_records_max, drifted_seconds, drifted_count_max, decisions, rebalances, generations_skipped,
  decisions_identical, decisions_drifted, decisions_unverified,
  partitions_moved, partitions_moved_comparable - partitions_moved_optimal AS moves_avoidable,
  unassigned_partition_seconds_min, unassigned_partition_seconds_max
FROM group_hourly
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
  AND cluster = :cluster AND group_id = :group_id
ORDER BY hour
