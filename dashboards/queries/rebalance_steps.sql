-- How many decisions were there over time, and what did they move? Sums of each minute, hour or day.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :group_id  STRING     one group; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
--   :step      STRING     minute, hour or day
--   :each      STRING     yes: sums of each group; otherwise of all together
-- Columns: one row per step and verdict with a decision, or of each group, the oldest first.
--   time              beginning of the step
--   group_id          the group; NULL in sums of all
--   verdict           verdict of these decisions; NULL while it is pending
--   decisions         how many
--   rebalances        those of kind rebalance
--   partitions_moved  partitions that went from one owner to another, where that is known
--   moves_avoidable   of these, those beyond the fewest possible, where both are known
WITH decisions AS (
  SELECT cluster, group_id, decision, date_trunc(:step, record_time) AS time,
    CASE WHEN kind = 'rebalance' THEN 1 ELSE 0 END AS is_rebalance, partitions_moved,
    greatest(partitions_moved - partitions_moved_optimal, 0) AS moves_avoidable,
    CASE WHEN partitions_moved IS NULL OR partitions_moved_optimal IS NULL THEN 0 ELSE 1 END AS both_known
  FROM rebalance_churn_current
  WHERE event_date >= CAST(:since AS DATE) AND record_time >= :since AND record_time < :until
    AND (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
),
verdicts AS (
  -- (A decision is judged again where the settings change. A group that decides topic by topic has a verdict for each:
  -- the worst is the decision's.)
  SELECT cluster, group_id, decision,
    max_by(verdict, CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END) AS verdict
  FROM (
    SELECT *, max(round) OVER (PARTITION BY cluster, group_id, decision) AS newest
    FROM drift
    WHERE event_date >= CAST(:since AS DATE) AND record_time >= :since
      AND (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  ) AS each
  WHERE round = newest
  GROUP BY cluster, group_id, decision
)
SELECT c.time, CASE WHEN :each = 'yes' THEN c.group_id END AS group_id, d.verdict, count(*) AS decisions, CAST(sum(c.is_rebalance) AS BIGINT) AS rebalances,
  CAST(sum(c.partitions_moved) AS BIGINT) AS partitions_moved,
  CAST(sum(CASE WHEN c.both_known = 1 THEN c.moves_avoidable END) AS BIGINT) AS moves_avoidable
FROM decisions AS c
LEFT JOIN verdicts AS d ON d.cluster = c.cluster AND d.group_id = c.group_id AND d.decision = c.decision
GROUP BY c.time, CASE WHEN :each = 'yes' THEN c.group_id END, d.verdict
ORDER BY c.time, group_id NULLS FIRST, d.verdict NULLS FIRST
