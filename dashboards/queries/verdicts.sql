-- Which decisions had a verdict? The newest of a time.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
--   :verdict   STRING     one verdict; NULL for all
--   :most      INT        most rows to return
-- Columns: one row per verdict, the newest first; the columns of drift keep their names.
SELECT cluster, group_id, decision, record_time, generation, strategy, expected_strategy, strategy_mismatch, verdict,
  basis, coalesce(own_verdict, verdict) AS own_verdict, reason, matching_library, candidates, nearest_library, nearest_differing,
  drifted_in_all AS drifted_count
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
  AND (:verdict IS NULL OR verdict = :verdict)
ORDER BY record_time DESC, decision DESC, group_id, cluster
LIMIT :most
