-- How did rounds go? The rounds of a time, the newest first.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  how far to look back
--   :most      INT        most rows to return
-- Columns: one row per round; the columns of the table rounds keep their names.
SELECT cluster, round, round_time, closed_time, interval_ms, groups, events, log_records, elapsed_ms
FROM rounds
WHERE event_date >= CAST(:since AS DATE) AND round_time >= :since AND (:cluster IS NULL OR cluster = :cluster)
ORDER BY cluster, round DESC
LIMIT :most
