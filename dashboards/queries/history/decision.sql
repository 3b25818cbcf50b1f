-- What was decided then, why, what did it cost, and what was the verdict? One decision of any age.
--
-- Parameters:
--   :cluster   STRING  the cluster
--   :group_id  STRING  the group
--   :decision  BIGINT  its number
-- Columns: one row, or none; the columns of rebalance_churn and drift keep their names, and those of drift are NULL
-- while the verdict is pending.
--   previous_decision, next_decision  numbers of the decisions before and after it; NULL without one
WITH decisions AS (
  SELECT *
  FROM rebalance_churn_current
  WHERE cluster = :cluster AND group_id = :group_id
),
verdicts AS (
  SELECT *, row_number() OVER (ORDER BY round DESC) AS age
  FROM drift
  WHERE cluster = :cluster AND group_id = :group_id AND decision = :decision
)
SELECT c.cluster, c.group_id, c.decision, c.record_time, c.kind, c.incarnation, c.generation, c.previous_generation,
  c.generations_skipped, c.follows, c.protocol_type, c.strategy, c.leader, c.members, c.partitions, c.joined, c.left,
  c.replaced, c.partitions_moved, c.partitions_moved_optimal, c.partitions_pending_handover,
  c.unassigned_partition_seconds_min, c.unassigned_partition_seconds_max, c.causes, c.rebalance_protocol,
  d.verdict, d.reason, d.expected_strategy, d.matching_library, d.drifted_count, d.drifted_partitions,
  (SELECT max(decision) FROM decisions WHERE decision < :decision) AS previous_decision,
  (SELECT min(decision) FROM decisions WHERE decision > :decision) AS next_decision
FROM decisions AS c
LEFT JOIN verdicts AS d ON d.decision = c.decision AND d.age = 1
WHERE c.decision = :decision
