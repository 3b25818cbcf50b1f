-- How did the lag of one group develop? The highest in each second, minute or hour.
--
-- A group gets a row when one of its values changes, and every heartbeat: between two rows the values hold.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  how far to look back
--   :step      STRING     second, minute or hour
-- Columns: one row per step in which the group has a row, the oldest first.
--   time           beginning of the step
--   lag_total      highest sum over the subscribed partitions; NULL when it was never known
--   lag_max        highest lag of one partition
--   unknown        largest number of partitions whose lag was not known
SELECT time, max(lag_total) AS lag_total, max(lag_max) AS lag_max, max(lag_unknown) AS unknown
FROM (
  SELECT date_trunc(:step, round_time) AS time, lag_total, lag_max, lag_unknown
  FROM group_health
  WHERE event_date >= CAST(:since AS DATE) AND round_time >= :since AND cluster = :cluster AND group_id = :group_id
    AND NOT ended
) AS seen
GROUP BY time
ORDER BY time
