-- What was decided, why, and what did it cost? Decisions of one group or of all, the newest first.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :group_id  STRING     one group; NULL for all
--   :since     TIMESTAMP  how far to look back
--   :most      INT        most rows to return
-- Columns: one row per decision; the columns of rebalance_churn keep their names, and
--   verdict        verdict on this decision; NULL while it is pending
--   drifted_count  number of its partitions without the expected owner; NULL while the verdict is pending
WITH decisions AS (
  SELECT *
  FROM rebalance_churn_current
  WHERE event_date >= CAST(:since AS DATE) AND record_time >= :since
    AND (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  ORDER BY record_time DESC, decision DESC, group_id, cluster
  LIMIT :most
),
verdicts AS (
  -- (A decision is judged again where the settings change. A group that decides topic by topic has a verdict for each:
  -- the worst is the decision's.)
  SELECT cluster, group_id, decision,
    max_by(verdict, CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END) AS verdict,
    CAST(sum(drifted_count) AS INT) AS drifted_count
  FROM (
    SELECT *, max(round) OVER (PARTITION BY cluster, group_id, decision) AS newest
    FROM drift
    WHERE event_date >= CAST(:since AS DATE) AND record_time >= :since
      AND (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  ) AS each
  WHERE round = newest
  GROUP BY cluster, group_id, decision
)
SELECT
  c.cluster, c.group_id, c.decision, c.record_time, c.kind, c.generation, c.previous_generation,
  c.generations_skipped, c.follows, c.strategy, c.leader, c.members, c.partitions, c.joined, c.left, c.replaced,
  c.partitions_moved, c.partitions_moved_optimal, c.partitions_pending_handover, c.unassigned_partition_seconds_min, c.unassigned_partition_seconds_max,
  c.causes, 1 AS decisions, CASE WHEN c.kind = 'rebalance' THEN 1 ELSE 0 END AS rebalances,
  CASE WHEN c.partitions_moved > c.partitions_moved_optimal THEN c.partitions_moved - c.partitions_moved_optimal
    WHEN c.partitions_moved IS NOT NULL AND c.partitions_moved_optimal IS NOT NULL THEN 0 END AS moves_avoidable,
  d.verdict, d.drifted_count
FROM decisions AS c
LEFT JOIN verdicts AS d ON d.cluster = c.cluster AND d.group_id = c.group_id AND d.decision = c.decision
ORDER BY c.record_time DESC, c.decision DESC, c.group_id, c.cluster
