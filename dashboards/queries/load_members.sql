-- Which member carries how much? The members of one group in its newest window of the rates.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
-- Columns: one row per member, the one that carries most first; the columns of the table member_load keep their names.
SELECT member_id, client_id, client_host, partitions, produced_per_second, consumed_per_second, share, round_time
FROM member_load_current
WHERE cluster = :cluster AND group_id = :group_id
ORDER BY produced_per_second DESC NULLS LAST, member_id
