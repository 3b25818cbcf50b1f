-- Rows of partition_hourly: each partition of one cluster's groups in one hour in which something happened to it.
--
-- As in group_hourly.sql, a row of lag holds from its round to the partition's next row.
--
-- Reads: steps (see steps.sql), lag: all rows that can concern the hour.
-- Parameters:
--   $cluster        the cluster
--   $hour           beginning of the hour
--   $definition     version of the definitions
--   $first_round, $last_round  the first and last of steps
--   $part, $parts   which part of the groups, so that a large hour fits into memory
WITH
total AS (SELECT coalesce(max(until_ms), 0) AS ms FROM steps),
given AS (
  SELECT * FROM lag
  WHERE round >= $first_round AND round <= $last_round AND cluster = $cluster AND hash(group_id) % $parts = $part
),
-- (To order and group by a number takes two thirds of the time that four columns take.)
partitions AS MATERIALIZED (
  SELECT row_number() OVER () AS number, * FROM (SELECT DISTINCT group_id, topic, broker, partition FROM given)
),
numbered AS (
  SELECT p.number, g.*
  FROM given AS g JOIN partitions AS p
    ON g.group_id = p.group_id AND g.topic = p.topic AND g.broker IS NOT DISTINCT FROM p.broker
    AND g.partition = p.partition
),
seen AS (
  SELECT number, in_hour, ended, lag, lost_records, commits, rewound_by, lag_status,
    -- (Anyone may commit any 64-bit number as an offset, and the difference of two can be beyond it.)
    committed_offset::HUGEINT - lag(committed_offset) OVER moments AS committed_step,
    high_watermark - lag(high_watermark) OVER moments AS produced_step,
    CASE WHEN ended THEN 0 ELSE coalesce(lead(until_ms) OVER moments, (SELECT ms FROM total)) - until_ms END AS held_ms
  FROM numbered JOIN steps USING (round)
  WINDOW moments AS (PARTITION BY number ORDER BY round)
),
-- (By status first: a partition has one or two.)
by_status AS (
  SELECT number,
    CASE WHEN ended THEN NULL ELSE lag_status END AS name,
    sum(held_ms) AS held_ms,
    max(lag) FILTER (NOT ended) AS lag_max,
    sum(lag::DOUBLE * held_ms) AS lag_sum,
    sum(held_ms) FILTER (lag IS NOT NULL) AS known_ms,
    max(lost_records) FILTER (NOT ended) AS lost_records_max,
    sum(commits) FILTER (in_hour) AS commits,
    bool_or(in_hour AND commits IS NULL) AS commits_unknown,
    -- (`greatest` passes over NULL.)
    sum(greatest(committed_step, 0)) FILTER (in_hour AND committed_step IS NOT NULL) AS committed_growth,
    sum(greatest(produced_step, 0)) FILTER (in_hour AND produced_step IS NOT NULL) AS produced_growth,
    max(rewound_by) FILTER (in_hour) AS rewound_by_max,
    bool_or(lag IS NULL AND NOT ended) AS had_unknown
  FROM seen
  WHERE in_hour OR held_ms > 0
  GROUP BY ALL
)
SELECT
  $cluster AS cluster, group_id, topic, broker, partition, $hour AS hour, CAST($hour AS DATE) AS event_date,
  $definition AS definition,
  sum(held_ms) / 1000.0 AS observed_seconds,
  max(lag_max) AS lag_max,
  sum(lag_sum) / nullif(sum(known_ms), 0) AS lag_mean,
  coalesce(sum(known_ms), 0) / 1000.0 AS lag_known_seconds,
  max(lost_records_max) AS lost_records_max,
  -- (Rows of a group that is only seen in rounds do not have them.)
  CASE WHEN bool_or(commits_unknown) THEN NULL ELSE coalesce(sum(commits), 0) END AS commits,
  sum(committed_growth) AS committed_offset_growth,
  sum(produced_growth) AS high_watermark_growth,
  coalesce(max(rewound_by_max), 0) AS rewound_by_max,
  coalesce(
    list({'name': name, 'seconds': held_ms / 1000.0::DOUBLE} ORDER BY name) FILTER (name IS NOT NULL AND held_ms > 0), []
  ) AS lag_status_seconds
FROM by_status JOIN partitions USING (number)
GROUP BY group_id, topic, broker, partition
HAVING max(lag_max) > 0 OR sum(committed_growth) > 0 OR sum(produced_growth) > 0 OR max(rewound_by_max) > 0
  OR max(lost_records_max) > 0 OR bool_or(name NOT IN ('ok', 'no_commit')) OR bool_or(had_unknown AND name <> 'no_commit')
