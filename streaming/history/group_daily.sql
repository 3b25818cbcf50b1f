-- Rows of group_daily: each group of one cluster in one day, from its hours.
--
-- Reads: group_hourly, the day's rows.
-- Parameters:
--   $cluster     the cluster
--   $day         the day
--   $definition  version of the definitions
WITH
hours AS (SELECT * FROM group_hourly WHERE cluster = $cluster AND event_date = $day),
named AS (
  SELECT group_id, 'lag_status' AS what, unnest(lag_status_seconds) AS time FROM hours
  UNION ALL SELECT group_id, 'state', unnest(state_seconds) FROM hours
  UNION ALL SELECT group_id, 'verdict', unnest(verdict_seconds) FROM hours
  UNION ALL SELECT group_id, 'finding', unnest(finding_seconds) FROM hours
),
timed AS (
  SELECT group_id, what, time.name AS name, sum(time.seconds) AS seconds FROM named GROUP BY ALL
),
times AS (
  SELECT group_id,
    list({'name': name, 'seconds': seconds} ORDER BY name) FILTER (what = 'lag_status') AS lag_status_seconds,
    list({'name': name, 'seconds': seconds} ORDER BY name) FILTER (what = 'state') AS state_seconds,
    list({'name': name, 'seconds': seconds} ORDER BY name) FILTER (what = 'verdict') AS verdict_seconds,
    list({'name': name, 'seconds': seconds} ORDER BY name) FILTER (what = 'finding') AS finding_seconds
  FROM timed
  GROUP BY group_id
),
summed AS (
  SELECT group_id,
    sum(source_rows) AS source_rows,
    sum(observed_seconds) AS observed_seconds,
    max(lag_total_max) AS lag_total_max,
    sum(lag_total_mean * lag_known_seconds) / nullif(sum(lag_known_seconds), 0) AS lag_total_mean,
    sum(lag_known_seconds) AS lag_known_seconds,
    max(lag_max) AS lag_max,
    max(lost_records_max) AS lost_records_max,
    sum(commits) AS commits,
    max(drifted_count_max) AS drifted_count_max,
    min(members_min) AS members_min,
    max(members_max) AS members_max,
    sum(members_mean * members_known_seconds) / nullif(sum(members_known_seconds), 0) AS members_mean,
    sum(members_known_seconds) AS members_known_seconds,
    max(imbalance_max) AS imbalance_max,
    sum(imbalance_mean * imbalance_known_seconds) / nullif(sum(imbalance_known_seconds), 0) AS imbalance_mean,
    sum(imbalance_optimal_mean * imbalance_known_seconds) / nullif(sum(imbalance_known_seconds), 0)
      AS imbalance_optimal_mean,
    sum(imbalance_known_seconds) AS imbalance_known_seconds,
    sum(decisions) AS decisions,
    sum(rebalances) AS rebalances,
    sum(generations_skipped) AS generations_skipped,
    sum(decisions_identical) AS decisions_identical,
    sum(decisions_drifted) AS decisions_drifted,
    sum(decisions_unverified) AS decisions_unverified,
    sum(partitions_moved) AS partitions_moved,
    sum(partitions_moved_unknown) AS partitions_moved_unknown,
    sum(partitions_moved_comparable) AS partitions_moved_comparable,
    sum(partitions_moved_optimal) AS partitions_moved_optimal,
    sum(unassigned_partition_seconds_min) AS unassigned_partition_seconds_min,
    CASE WHEN bool_and(unassigned_partition_seconds_max IS NOT NULL) THEN sum(unassigned_partition_seconds_max) END
      AS unassigned_partition_seconds_max
  FROM hours
  GROUP BY group_id
)
SELECT $cluster AS cluster, $day AS event_date, $definition AS definition, summed.*,
  coalesce(lag_status_seconds, []) AS lag_status_seconds,
  coalesce(state_seconds, []) AS state_seconds,
  coalesce(verdict_seconds, []) AS verdict_seconds,
  coalesce(finding_seconds, []) AS finding_seconds
FROM summed LEFT JOIN times USING (group_id)
