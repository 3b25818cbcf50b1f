-- Which partitions of a group lag, and when? The worst ones over the last hours, in steps of some minutes.
--
-- A partition gets a row when something changes, and every heartbeat: between two rows the values hold.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first moment
--   :until     TIMESTAMP  the end of the last step
--   :minutes   INT        length of a step; an hour is a multiple of it
--   :most      INT        how many partitions
-- Columns: one row per partition and step in which it has a row, the worst partition first.
--   topic, broker, partition  the partition
--   hour, step     the hour, and the number of the step in it
--   lag_max        highest lag; NULL when it was never known
--   lag_last       lag in the last row; NULL when it is not known
--   time_last      time of the last row
--   gone           whether the partition, or the subscription to its topic, ended with the last row
--   of_all         partitions with a row
--   rest_lag_max   highest lag of those that are left out
WITH seen AS (
  SELECT topic, broker, partition, round_time, lag, ended OR NOT subscribed AS gone, date_trunc('hour', round_time) AS hour,
    CAST(floor(EXTRACT(MINUTE FROM round_time) / :minutes) AS INT) AS step,
    row_number() OVER (
      PARTITION BY topic, broker, partition, date_trunc('hour', round_time),
        CAST(floor(EXTRACT(MINUTE FROM round_time) / :minutes) AS INT)
      ORDER BY round DESC
    ) AS newest
  FROM lag
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
    AND round_time >= :since AND round_time < :until AND cluster = :cluster AND group_id = :group_id
),
steps AS (
  SELECT topic, broker, partition, hour, step,
    max(CASE WHEN NOT gone THEN lag END) AS lag_max,
    max(CASE WHEN newest = 1 THEN lag END) AS lag_last,
    max(round_time) AS time_last,
    max(CASE WHEN newest = 1 AND gone THEN 1 ELSE 0 END) = 1 AS gone
  FROM seen
  GROUP BY topic, broker, partition, hour, step
),
highest AS (
  SELECT topic, broker, partition, max(lag_max) AS lag_max
  FROM steps
  GROUP BY topic, broker, partition
),
placed AS (
  SELECT *, count(*) OVER () AS of_all,
    row_number() OVER (ORDER BY lag_max DESC NULLS LAST, topic, broker, partition) AS place
  FROM highest
),
rest AS (
  SELECT *, max(CASE WHEN place > :most THEN lag_max END) OVER () AS rest_lag_max
  FROM placed
)
SELECT s.topic, s.broker, s.partition, s.hour, s.step, s.lag_max, s.lag_last, s.time_last, s.gone, r.of_all,
  r.rest_lag_max
FROM steps AS s
JOIN rest AS r ON r.topic = s.topic AND r.partition = s.partition AND coalesce(r.broker, '') = coalesce(s.broker, '')
WHERE r.place <= :most
ORDER BY r.place, s.hour, s.step
