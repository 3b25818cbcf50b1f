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
  -- (A group that decides topic by topic has a verdict for each: the worst is the decision's.)
  SELECT *, row_number() OVER (ORDER BY CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END DESC, round DESC, topic NULLS FIRST) AS age,
    CAST(sum(drifted_count) OVER () AS INT) AS drifted_in_all,
    flatten(array_agg(drifted_partitions) OVER (ORDER BY topic NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) AS all_drifted
  FROM (
    SELECT *, row_number() OVER (PARTITION BY topic ORDER BY round DESC) AS turn
    FROM drift
    WHERE cluster = :cluster AND group_id = :group_id AND decision = :decision
  ) AS each
  WHERE turn = 1
)
SELECT c.cluster, c.group_id, c.decision, c.record_time, c.kind, c.incarnation, c.generation, c.previous_generation,
  c.generations_skipped, c.follows, c.protocol_type, c.strategy, c.leader, c.members, c.partitions, c.joined, c.left,
  c.replaced, c.partitions_moved, c.partitions_moved_optimal, c.partitions_pending_handover,
  c.unassigned_partition_seconds_min, c.unassigned_partition_seconds_max, c.causes, c.rebalance_protocol,
  c.join_completed_time, c.decided_time_min, c.decided_time_max, c.partitions_stopped_unmoved,
  d.verdict, d.basis, coalesce(d.own_verdict, d.verdict) AS own_verdict, d.reason, d.expected_strategy, d.matching_library, d.nearest_library, d.nearest_differing, d.drifted_in_all AS drifted_count, d.all_drifted AS drifted_partitions,
  (SELECT max(decision) FROM decisions WHERE decision < :decision) AS previous_decision,
  (SELECT min(decision) FROM decisions WHERE decision > :decision) AS next_decision
FROM decisions AS c
LEFT JOIN verdicts AS d ON d.decision = c.decision AND d.age = 1
WHERE c.decision = :decision
