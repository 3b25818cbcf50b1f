-- Rows of group_hourly: each group of one cluster in one hour.
--
-- A row of group_health holds from its round to the group's next row. Values are weighted by the time for which they
-- held in the hour; the highest and lowest also count where they held for no time, at the hour's last round.
--
-- Reads: steps (see steps.sql), group_health, rebalance_churn, drift: all rows that can concern the hour.
-- Parameters:
--   $cluster     the cluster
--   $hour        beginning of the hour
--   $definition  version of the definitions
WITH
total AS (SELECT coalesce(max(until_ms), 0) AS ms FROM steps),
seen AS (
  SELECT h.*, s.in_hour,
    CASE WHEN ended THEN 0
         ELSE coalesce(lead(until_ms) OVER (PARTITION BY group_id ORDER BY round), (SELECT ms FROM total)) - until_ms
    END AS held_ms
  FROM group_health AS h JOIN steps AS s USING (round)
  WHERE cluster = $cluster
),
held AS (SELECT * FROM seen WHERE NOT ended AND (in_hour OR held_ms > 0)),
measured AS (
  SELECT group_id,
    sum(held_ms) AS observed_ms,
    max(lag_total) AS lag_total_max,
    sum(lag_total::DOUBLE * held_ms) AS lag_total_sum,
    sum(held_ms) FILTER (lag_total IS NOT NULL) AS lag_known_ms,
    max(lag_max) AS lag_max,
    max(lost_records) AS lost_records_max,
    max(drifted_count) AS drifted_count_max,
    sum(held_ms) FILTER (verdict = 'drifted') AS drifted_ms,
    min(members) AS members_min,
    max(members) AS members_max,
    sum(members::DOUBLE * held_ms) AS members_sum,
    sum(held_ms) FILTER (members IS NOT NULL) AS members_known_ms,
    max(imbalance) AS imbalance_max,
    -- (Sums of floating-point numbers depend on their order.)
    sum(imbalance * held_ms ORDER BY round) FILTER (imbalance_optimal IS NOT NULL) AS imbalance_sum,
    sum(imbalance_optimal * held_ms ORDER BY round) FILTER (imbalance IS NOT NULL) AS imbalance_optimal_sum,
    sum(held_ms) FILTER (imbalance IS NOT NULL AND imbalance_optimal IS NOT NULL) AS imbalance_known_ms,
    sum(held_ms) FILTER (partitions > 0 AND members > partitions) AS beyond_ms,
    max(members - partitions) FILTER (partitions > 0 AND members > partitions) AS beyond_max
  FROM held
  GROUP BY group_id
),
reported AS (
  SELECT group_id, count(*) AS source_rows, sum(commits) AS commits
  FROM group_health
  WHERE cluster = $cluster AND round_time >= $hour AND round_time < $hour + INTERVAL 1 HOUR
  GROUP BY group_id
),
named AS (
  SELECT group_id, 'lag_status' AS what, lag_status AS name, held_ms FROM held
  UNION ALL SELECT group_id, 'state', state, held_ms FROM held
  UNION ALL SELECT group_id, 'verdict', verdict, held_ms FROM held
  UNION ALL
  SELECT group_id, 'finding', unnest(list_distinct(list_transform(findings, lambda f: f.finding))), held_ms FROM held
),
timed AS (
  SELECT group_id, what, name, sum(held_ms) / 1000.0::DOUBLE AS seconds
  FROM named
  WHERE name IS NOT NULL AND held_ms > 0
  GROUP BY ALL
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
in_churn AS (
  SELECT *, kind IN ('rebalance', 'migration') AS is_rebalance,
    row_number() OVER (PARTITION BY group_id, decision ORDER BY revision DESC) = 1 AS is_newest
  FROM rebalance_churn
  WHERE cluster = $cluster AND record_time >= $hour AND record_time < $hour + INTERVAL 1 HOUR
),
churn AS (
  SELECT group_id,
    count(*) AS source_rows,
    count(*) FILTER (is_newest) AS decisions,
    count(*) FILTER (is_newest AND is_rebalance) AS rebalances,
    sum(generations_skipped) FILTER (is_newest) AS generations_skipped,
    sum(partitions_moved) FILTER (is_newest AND is_rebalance) AS partitions_moved,
    count(*) FILTER (is_newest AND is_rebalance AND partitions_moved IS NULL) AS partitions_moved_unknown,
    sum(partitions_moved)
      FILTER (is_newest AND is_rebalance AND partitions_moved_optimal IS NOT NULL) AS partitions_moved_comparable,
    sum(partitions_moved_optimal)
      FILTER (is_newest AND is_rebalance AND partitions_moved IS NOT NULL) AS partitions_moved_optimal,
    sum(unassigned_partition_seconds_min ORDER BY decision) FILTER (is_newest AND is_rebalance) AS unassigned_min,
    sum(unassigned_partition_seconds_max ORDER BY decision) FILTER (is_newest AND is_rebalance) AS unassigned_max,
    count(*) FILTER (is_newest AND is_rebalance AND unassigned_partition_seconds_max IS NULL) AS unbounded,
    sum(partitions_stopped_unmoved) FILTER (is_newest AND is_rebalance) AS stopped_unmoved,
    count(*) FILTER (is_newest AND is_rebalance AND partitions_stopped_unmoved IS NULL) AS stopped_unmoved_unknown
  FROM in_churn
  GROUP BY group_id
),
counted AS (
  SELECT group_id, what, name, count(*) AS count
  FROM (
    SELECT group_id, 'protocol' AS what, rebalance_protocol AS name FROM in_churn WHERE is_newest AND is_rebalance
    UNION ALL
    SELECT group_id, 'cause', unnest(list_distinct(list_transform(causes, lambda c: c.cause)))
    FROM in_churn
    WHERE is_newest AND is_rebalance
  )
  WHERE name IS NOT NULL
  GROUP BY ALL
),
counts AS (
  SELECT group_id,
    list({'name': name, 'count': count} ORDER BY name) FILTER (what = 'protocol') AS by_protocol,
    list({'name': name, 'count': count} ORDER BY name) FILTER (what = 'cause') AS by_cause
  FROM counted
  GROUP BY group_id
),
in_drift AS (
  -- (A decision is judged again where the settings change: the newest verdict counts. A group that decides topic by
  -- topic has a verdict for each: the worst is the decision's.)
  SELECT group_id, decision, count(*) AS source_rows, bool_or(round = newest AND verdict = 'drifted') AS drifted,
    bool_or(round = newest AND verdict = 'unverified') AS unverified,
    bool_or(round = newest AND verdict = 'identical') AS identical
  FROM (
    SELECT *, max(round) OVER (PARTITION BY group_id, decision) AS newest
    FROM drift
    WHERE cluster = $cluster AND record_time >= $hour AND record_time < $hour + INTERVAL 1 HOUR
  ) AS each
  GROUP BY group_id, decision
),
verdicts AS (
  SELECT group_id, sum(source_rows) AS source_rows,
    count(*) FILTER (drifted) AS drifted,
    count(*) FILTER (unverified AND NOT drifted) AS unverified,
    count(*) FILTER (identical AND NOT drifted AND NOT unverified) AS identical
  FROM in_drift
  GROUP BY group_id
),
groups AS (
  SELECT group_id FROM measured UNION SELECT group_id FROM reported UNION SELECT group_id FROM churn
  UNION SELECT group_id FROM verdicts
)
SELECT
  $cluster AS cluster, group_id, $hour AS hour, CAST($hour AS DATE) AS event_date, $definition AS definition,
  coalesce(r.source_rows, 0) + coalesce(c.source_rows, 0) + coalesce(v.source_rows, 0) AS source_rows,
  coalesce(observed_ms, 0) / 1000.0 AS observed_seconds,
  lag_total_max,
  lag_total_sum / nullif(lag_known_ms, 0) AS lag_total_mean,
  coalesce(lag_known_ms, 0) / 1000.0 AS lag_known_seconds,
  lag_max, lost_records_max,
  -- (Rows of a group that is only seen in rounds do not have them.)
  CASE WHEN r.source_rows > 0 AND commits IS NULL THEN NULL ELSE coalesce(commits, 0) END AS commits,
  coalesce(lag_status_seconds, []) AS lag_status_seconds,
  coalesce(state_seconds, []) AS state_seconds,
  coalesce(verdict_seconds, []) AS verdict_seconds,
  coalesce(drifted_ms, 0) / 1000.0 AS drifted_seconds,
  coalesce(finding_seconds, []) AS finding_seconds,
  drifted_count_max, members_min, members_max,
  members_sum / nullif(members_known_ms, 0) AS members_mean,
  coalesce(members_known_ms, 0) / 1000.0 AS members_known_seconds,
  imbalance_max,
  imbalance_sum / nullif(imbalance_known_ms, 0) AS imbalance_mean,
  imbalance_optimal_sum / nullif(imbalance_known_ms, 0) AS imbalance_optimal_mean,
  coalesce(imbalance_known_ms, 0) / 1000.0 AS imbalance_known_seconds,
  coalesce(decisions, 0) AS decisions,
  coalesce(rebalances, 0) AS rebalances,
  coalesce(generations_skipped, 0) AS generations_skipped,
  coalesce(identical, 0) AS decisions_identical,
  coalesce(drifted, 0) AS decisions_drifted,
  coalesce(unverified, 0) AS decisions_unverified,
  coalesce(partitions_moved, 0) AS partitions_moved,
  coalesce(partitions_moved_unknown, 0) AS partitions_moved_unknown,
  coalesce(partitions_moved_comparable, 0) AS partitions_moved_comparable,
  coalesce(partitions_moved_optimal, 0) AS partitions_moved_optimal,
  coalesce(unassigned_min, 0) AS unassigned_partition_seconds_min,
  CASE WHEN coalesce(unbounded, 0) = 0 THEN coalesce(unassigned_max, 0) END AS unassigned_partition_seconds_max,
  coalesce(by_protocol, []) AS rebalances_by_protocol,
  coalesce(by_cause, []) AS rebalances_by_cause,
  coalesce(stopped_unmoved, 0) AS partitions_stopped_unmoved,
  coalesce(stopped_unmoved_unknown, 0) AS partitions_stopped_unmoved_unknown,
  coalesce(beyond_ms, 0) / 1000.0 AS members_beyond_partitions_seconds,
  coalesce(beyond_max, 0) AS members_beyond_partitions_max
FROM groups
LEFT JOIN measured USING (group_id)
LEFT JOIN reported AS r USING (group_id)
LEFT JOIN times USING (group_id)
LEFT JOIN churn AS c USING (group_id)
LEFT JOIN counts USING (group_id)
LEFT JOIN verdicts AS v USING (group_id)
