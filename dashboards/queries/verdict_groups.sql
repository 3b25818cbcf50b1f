-- Which groups drifted, ran another strategy than configured, or could not be recomputed, and as what were they recomputed?
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
-- Columns: one row per group, verdict, basis, reason, strategies and library; the columns of drift keep their names.
--   verdicts        how many
--   mismatches      those of them with another strategy than the configured one
--   first_time, last_time  times of the first and of the last of these decisions
--   last_decision   number of the last
--   drifted_most    most drifted partitions of one of them
--   candidates_most most candidates that were computed for one of them
SELECT cluster, group_id, verdict, basis, reason, strategy, expected_strategy, matching_library,
  count(*) AS verdicts,
  CAST(sum(CASE WHEN strategy_mismatch THEN 1 ELSE 0 END) AS BIGINT) AS mismatches,
  min(record_time) AS first_time, max(record_time) AS last_time, max(decision) AS last_decision,
  max(drifted_in_all) AS drifted_most, max(candidates) AS candidates_most
FROM (
  -- (A decision is judged again where the settings change. A group that decides topic by topic has a verdict for each:
  -- the worst is the decision's.)
  SELECT *,
    row_number() OVER (
      PARTITION BY cluster, group_id, decision ORDER BY round DESC, CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END DESC, topic NULLS FIRST
    ) AS place,
    CAST(sum(drifted_count) OVER (PARTITION BY cluster, group_id, decision, round) AS INT) AS drifted_in_all
  FROM drift
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
    AND record_time >= :since AND record_time < :until AND (:cluster IS NULL OR cluster = :cluster)
) AS d
WHERE place = 1
GROUP BY cluster, group_id, verdict, basis, reason, strategy, expected_strategy, matching_library
ORDER BY last_time DESC, cluster, group_id, verdict, basis NULLS FIRST, reason NULLS FIRST, strategy NULLS FIRST,
  expected_strategy NULLS FIRST, matching_library NULLS FIRST
