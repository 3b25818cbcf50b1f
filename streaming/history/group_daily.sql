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
  SELECT group_id, hour, 'lag_status' AS what, unnest(lag_status_seconds) AS time FROM hours
  UNION ALL SELECT group_id, hour, 'state', unnest(state_seconds) FROM hours
  UNION ALL SELECT group_id, hour, 'verdict', unnest(verdict_seconds) FROM hours
  UNION ALL SELECT group_id, hour, 'finding', unnest(finding_seconds) FROM hours
),
timed AS (
  SELECT group_id, what, time.name AS name, sum(time.seconds ORDER BY hour) AS seconds FROM named GROUP BY ALL
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
counted AS (
  SELECT group_id, what, entry.name AS name, sum(entry.count)::BIGINT AS count
  FROM (
    SELECT group_id, 'protocol' AS what, unnest(rebalances_by_protocol) AS entry FROM hours
    UNION ALL SELECT group_id, 'cause', unnest(rebalances_by_cause) FROM hours
  )
  GROUP BY ALL
),
counts AS (
  SELECT group_id,
    list({'name': name, 'count': count} ORDER BY name) FILTER (what = 'protocol') AS by_protocol,
    list({'name': name, 'count': count} ORDER BY name) FILTER (what = 'cause') AS by_cause
  FROM counted
  GROUP BY group_id
),
-- (Sums of floating-point numbers depend on their order.)
summed AS (
  SELECT group_id,
    sum(source_rows) AS source_rows,
    sum(observed_seconds ORDER BY hour) AS observed_seconds,
    max(lag_total_max) AS lag_total_max,
    sum(lag_total_mean * lag_known_seconds ORDER BY hour) / nullif(sum(lag_known_seconds ORDER BY hour), 0) AS lag_total_mean,
    sum(lag_known_seconds ORDER BY hour) AS lag_known_seconds,
    max(lag_max) AS lag_max,
    max(lost_records_max) AS lost_records_max,
    CASE WHEN bool_or(commits IS NULL) THEN NULL ELSE sum(commits) END AS commits,
    max(drifted_count_max) AS drifted_count_max,
    sum(drifted_seconds ORDER BY hour) AS drifted_seconds,
    min(members_min) AS members_min,
    max(members_max) AS members_max,
    sum(members_mean * members_known_seconds ORDER BY hour) / nullif(sum(members_known_seconds ORDER BY hour), 0) AS members_mean,
    sum(members_known_seconds ORDER BY hour) AS members_known_seconds,
    max(imbalance_max) AS imbalance_max,
    sum(imbalance_mean * imbalance_known_seconds ORDER BY hour) / nullif(sum(imbalance_known_seconds ORDER BY hour), 0) AS imbalance_mean,
    sum(imbalance_optimal_mean * imbalance_known_seconds ORDER BY hour) / nullif(sum(imbalance_known_seconds ORDER BY hour), 0)
      AS imbalance_optimal_mean,
    sum(imbalance_known_seconds ORDER BY hour) AS imbalance_known_seconds,
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
    sum(unassigned_partition_seconds_min ORDER BY hour) AS unassigned_partition_seconds_min,
    CASE WHEN bool_and(unassigned_partition_seconds_max IS NOT NULL) THEN sum(unassigned_partition_seconds_max ORDER BY hour) END
      AS unassigned_partition_seconds_max,
    -- Hours that an older release has computed, and that cannot be computed again, lack these columns: then so does the day.
    bool_and(rebalances_by_protocol IS NOT NULL) AS has_counts,
    CASE WHEN has_counts THEN sum(partitions_stopped_unmoved) END AS partitions_stopped_unmoved,
    CASE WHEN has_counts THEN sum(partitions_stopped_unmoved_unknown) END AS partitions_stopped_unmoved_unknown,
    CASE WHEN has_counts THEN sum(members_beyond_partitions_seconds ORDER BY hour) END AS members_beyond_partitions_seconds,
    CASE WHEN has_counts THEN max(members_beyond_partitions_max) END AS members_beyond_partitions_max
  FROM hours
  GROUP BY group_id
)
SELECT $cluster AS cluster, $day AS event_date, $definition AS definition, summed.*,
  coalesce(lag_status_seconds, []) AS lag_status_seconds,
  coalesce(state_seconds, []) AS state_seconds,
  coalesce(verdict_seconds, []) AS verdict_seconds,
  coalesce(finding_seconds, []) AS finding_seconds,
  CASE WHEN has_counts THEN coalesce(by_protocol, []) END AS rebalances_by_protocol,
  CASE WHEN has_counts THEN coalesce(by_cause, []) END AS rebalances_by_cause
FROM summed LEFT JOIN times USING (group_id) LEFT JOIN counts USING (group_id)
