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
--   :by        STRING     offsets or seconds: by which the worst are chosen
--   :most      INT        how many partitions
-- Columns: one row per partition and step in which it has a row, the worst partition first.
--   topic, broker, partition  the partition
--   hour, step     the hour, and the number of the step in it
--   lag_max        highest lag; NULL when it was never known
--   behind_max     for so long at least the oldest unread record had waited at a round; NULL when nothing was unread, or
--                  that was never known
--   lag_last       lag in the last row; NULL when it is not known
--   unread_last    the oldest unread record was readable by then, by the last row; NULL when nothing is unread or that is
--                  not known
--   reason_last    why (lag.oldest_unread_reason)
--   time_last      time of the last row
--   gone           whether the partition, or the subscription to its topic, ended with the last row
--   of_all         partitions with a row
--   rest_lag_max   highest lag of those that are left out
--   rest_behind_max  likewise
WITH seen AS (
  SELECT topic, broker, partition, round_time, lag, oldest_unread_time_max, oldest_unread_reason,
    ended OR NOT subscribed AS gone, date_trunc('hour', round_time) AS hour,
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
    max(CASE WHEN NOT gone THEN round_time - oldest_unread_time_max END) AS behind_max,
    max(CASE WHEN newest = 1 THEN lag END) AS lag_last,
    max(CASE WHEN newest = 1 THEN oldest_unread_time_max END) AS unread_last,
    max(CASE WHEN newest = 1 THEN oldest_unread_reason END) AS reason_last,
    max(round_time) AS time_last,
    max(CASE WHEN newest = 1 AND gone THEN 1 ELSE 0 END) = 1 AS gone
  FROM seen
  GROUP BY topic, broker, partition, hour, step
),
highest AS (
  SELECT topic, broker, partition, max(lag_max) AS lag_max, max(behind_max) AS behind_max
  FROM steps
  GROUP BY topic, broker, partition
),
placed AS (
  SELECT *, count(*) OVER () AS of_all,
    row_number() OVER (
      ORDER BY CASE WHEN :by = 'seconds' THEN behind_max END DESC NULLS LAST, lag_max DESC NULLS LAST, topic, broker,
        partition
    ) AS place
  FROM highest
),
rest AS (
  SELECT *, max(CASE WHEN place > :most THEN lag_max END) OVER () AS rest_lag_max,
    max(CASE WHEN place > :most THEN behind_max END) OVER () AS rest_behind_max
  FROM placed
)
SELECT s.topic, s.broker, s.partition, s.hour, s.step, s.lag_max, s.behind_max, s.lag_last, s.unread_last,
  s.reason_last, s.time_last, s.gone, r.of_all, r.rest_lag_max, r.rest_behind_max
FROM steps AS s
JOIN rest AS r ON r.topic = s.topic AND r.partition = s.partition AND coalesce(r.broker, '') = coalesce(s.broker, '')
WHERE r.place <= :most
ORDER BY r.place, s.hour, s.step
