-- Rebalances of the period by their newest revision, in order.
--
-- Reads: rebalance_churn of the period.
-- Parameters: $cluster, $part, $parts (which part of the groups)
SELECT group_id, decision, epoch_ms(record_time) AS time_ms, strategy, rebalance_protocol AS protocol,
  list_transform(coalesce(causes, []), lambda c: c.cause) AS causes, follows, coalesce(joined, []) AS joined,
  coalesce("left", []) AS "left", len(coalesce(replaced, [])) AS replaced, partitions_moved AS moved,
  partitions_stopped_unmoved AS stopped_unmoved, unassigned_partition_seconds_min AS unassigned_seconds
FROM (
  SELECT *, row_number() OVER (PARTITION BY group_id, decision ORDER BY revision DESC) AS age
  FROM rebalance_churn
  WHERE cluster = $cluster AND hash(group_id) % $parts = $part AND kind = 'rebalance' AND record_time IS NOT NULL
)
WHERE age = 1
ORDER BY group_id, decision
