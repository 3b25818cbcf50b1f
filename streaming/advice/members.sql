-- Members that joined or left in the period.
--
-- Reads: rebalance_churn and members of the period. (A member that left has a closing row at that decision.)
-- Parameters: $cluster, $part, $parts (which part of the groups)
WITH
changed AS (
  SELECT DISTINCT group_id, unnest(list_concat(coalesce(joined, []), coalesce("left", []))) AS member_id
  FROM rebalance_churn
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND kind = 'rebalance'
)
SELECT group_id, member_id,
  arg_max_null(group_instance_id IS NOT NULL, decision) AS is_static,
  arg_max_null(client_id, decision) AS client_id,
  arg_max_null(client_host, decision) AS client_host,
  arg_max_null(session_timeout_ms, decision) AS session_timeout_ms
FROM members JOIN changed USING (group_id, member_id)
WHERE cluster = $cluster AND hash(group_id) % $parts = $part
GROUP BY group_id, member_id
