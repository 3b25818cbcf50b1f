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
  reason, matching_library, candidates, drifted_count
FROM drift
WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
  AND record_time >= :since AND record_time < :until AND (:cluster IS NULL OR cluster = :cluster)
  AND (:verdict IS NULL OR verdict = :verdict)
ORDER BY record_time DESC, decision DESC, group_id, cluster
LIMIT :most
