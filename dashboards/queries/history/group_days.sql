-- How was one group, day by day? Lag, verdicts, rebalances and what they cost.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  a time of the first day
--   :until     TIMESTAMP  a time of the last day
-- Columns: one row per day, the oldest first; the columns of group_daily keep their names, and
--   lag_unknown_seconds  time in which the lag was not known
--   moves_avoidable      partitions moved beyond the fewest possible, in decisions where both are known
SELECT event_date, observed_seconds, lag_total_max, lag_total_mean, lag_max,
  observed_seconds - lag_known_seconds AS lag_unknown_seconds, commits, members_min, members_max, members_mean,
  members_known_seconds, members_beyond_partitions_seconds, members_beyond_partitions_max, imbalance_mean,
  imbalance_optimal_mean, imbalance_max, state_seconds, verdict_seconds, lag_status_seconds, finding_seconds,
  lost_records_max, drifted_seconds, drifted_count_max, decisions, rebalances, generations_skipped,
  decisions_identical, decisions_drifted, decisions_unverified,
  partitions_moved, partitions_moved_comparable - partitions_moved_optimal AS moves_avoidable,
  unassigned_partition_seconds_min, unassigned_partition_seconds_max
FROM group_daily
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
  AND cluster = :cluster AND group_id = :group_id
ORDER BY event_date
