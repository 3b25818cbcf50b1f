-- Groups that were there at the end of a day, with their history.
--
-- Reads: group_daily of the period, group_health and rounds of its last day, rebalance_churn and drift of the period.
-- Parameters: $cluster, $day, $part, $parts (which part of the groups)
-- (The newest row counts, also where it says that something is not known: max_by would take the last known value.)
WITH
days AS (
  SELECT group_id,
    list({
      'day': event_date, 'observed': observed_seconds, 'commits': commits, 'members_max': members_max,
      'members_mean': members_mean, 'members_known': members_known_seconds,
      'beyond': members_beyond_partitions_seconds, 'beyond_max': members_beyond_partitions_max,
      'lag_total_max': lag_total_max
    } ORDER BY event_date) AS days
  FROM group_daily
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part
  GROUP BY group_id
  HAVING max(event_date) = $day
),
now AS (
  SELECT group_id, arg_max_null(ended, round) AS ended, arg_max_null(group_type, round) AS group_type,
    arg_max_null(protocol_type, round) AS protocol_type, arg_max_null(strategy, round) AS strategy,
    arg_max_null(partitions, round) AS partitions, arg_max_null(members, round) AS members
  FROM group_health
  WHERE cluster = $cluster AND event_date = $day AND hash(group_id) % $parts = $part
  GROUP BY group_id
),
open_verdicts AS (
  -- (`streaming.groups.UNEXPLAINED`)
  SELECT group_id, count(DISTINCT decision) AS judged,
    count(DISTINCT decision) FILTER (reason = 'no known client gives this assignment') AS unexplained,
    max_by(nearest_library, round) AS nearest
  FROM drift
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND verdict <> 'not_applicable'
  GROUP BY group_id
),
newest_decision AS (
  SELECT group_id, arg_max_null(members, decision) AS members, arg_max_null(epoch_ms(record_time), decision) AS time_ms
  FROM rebalance_churn
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part
  GROUP BY group_id
)
SELECT group_id, days, group_type, protocol_type, strategy, partitions,
  coalesce(judged, 0) AS judged, coalesce(unexplained, 0) AS unexplained, nearest,
  CASE WHEN now.members = 0 AND newest_decision.members = 0 THEN time_ms END AS empty_since_ms,
  (SELECT max_by(offsets_retention_minutes, round) FROM rounds WHERE cluster = $cluster AND event_date = $day)
    AS offsets_retention_minutes
FROM days LEFT JOIN now USING (group_id)
  LEFT JOIN newest_decision USING (group_id) LEFT JOIN open_verdicts USING (group_id)
WHERE ended IS DISTINCT FROM true
ORDER BY group_id
