-- Which member carried how much of a group over a time? Means over the windows in which it was there.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
-- Columns: one row per member, the one that carried most first; the columns of member_load keep their names.
--   windows               windows in which it was there
--   produced_per_second   mean where it is known; NULL where it never was
--   consumed_per_second   likewise
--   share_mean, share_max its part of what was produced in all members' partitions: mean and highest, where known
--   last_time             the end of its last window
SELECT member_id, max(client_id) AS client_id, max(client_host) AS client_host, count(*) AS windows,
  avg(produced_per_second) AS produced_per_second, avg(consumed_per_second) AS consumed_per_second,
  avg(share) AS share_mean, max(share) AS share_max, max(round_time) AS last_time
FROM member_load
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
  AND round_time >= :since AND round_time < :until AND cluster = :cluster AND group_id = :group_id AND NOT ended
GROUP BY member_id
ORDER BY produced_per_second DESC NULLS LAST, member_id
