-- Which partitions of a group lagged over days and months? The worst ones, in steps of some hours.
--
-- A partition has no row for an hour in which nothing happened to it: where the group was observed its lag was 0.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first hour
--   :until     TIMESTAMP  the end of the last hour
--   :hours     INT        length of a step; a day is a multiple of it
--   :most      INT        how many partitions
-- Columns: one row per partition and step in which it has a row, the worst partition first.
--   topic, broker, partition  the partition
--   day, step      the day, and the number of the step in it
--   lag_max        highest lag; NULL when it was never known
--   of_all         partitions with a row
--   rest_lag_max   highest lag of those that are left out
WITH steps AS (
  SELECT topic, broker, partition, date_trunc('day', hour) AS day,
    CAST(floor(EXTRACT(HOUR FROM hour) / :hours) AS INT) AS step, max(lag_max) AS lag_max
  FROM partition_hourly
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE) AND hour >= :since AND hour < :until
    AND cluster = :cluster AND group_id = :group_id
  GROUP BY topic, broker, partition, date_trunc('day', hour), CAST(floor(EXTRACT(HOUR FROM hour) / :hours) AS INT)
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
SELECT s.topic, s.broker, s.partition, s.day, s.step, s.lag_max, r.of_all, r.rest_lag_max
FROM steps AS s
JOIN rest AS r ON r.topic = s.topic AND r.partition = s.partition AND coalesce(r.broker, '') = coalesce(s.broker, '')
WHERE r.place <= :most
ORDER BY r.place, s.day, s.step
