-- Rounds of one cluster that matter for an hour: those in it, and those before it whose values it begins with.
--
-- The time from one round to the next is the second one's step; a step counts in the hour of its own round. So an hour
-- is known as soon as its last round is, and the time of missing rounds, beyond three intervals, counts nowhere.
--
-- Parameters:
--   $cluster    the cluster
--   $hour       beginning of the hour
--   $carry_ms   how old a value can be that the hour begins with, in time between rounds
-- Columns: one row per round.
--   in_hour     whether the round is in the hour
--   until_ms    time of the hour's steps up to and including this round's
WITH
stepped AS (
  SELECT round, round_time >= $hour AND round_time < $hour + INTERVAL 1 HOUR AS in_hour,
    greatest(0, least(coalesce(elapsed_ms - lag(elapsed_ms) OVER (ORDER BY round), 0), 3 * interval_ms)) AS step_ms
  FROM (SELECT DISTINCT round, round_time, elapsed_ms, interval_ms FROM rounds WHERE cluster = $cluster)
),
summed AS (
  SELECT round, in_hour,
    sum(CASE WHEN in_hour THEN step_ms ELSE 0 END) OVER (ORDER BY round)::BIGINT AS until_ms,
    sum(step_ms) OVER (ORDER BY round) AS elapsed_ms
  FROM stepped
),
hour AS (
  SELECT min(round) AS first_round, max(round) AS last_round, min(elapsed_ms) AS first_ms FROM summed WHERE in_hour
)
SELECT round, in_hour, until_ms
FROM summed CROSS JOIN hour
WHERE round <= last_round AND (round >= first_round OR elapsed_ms >= first_ms - $carry_ms)
