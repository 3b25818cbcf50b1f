-- How did the state of one group go? The rows in which its state, verdict, lag status or findings changed.
--
-- A living group has a row at each heartbeat: after half an hour without one nothing is known, and the next row counts
-- as a change.
--
-- Parameters:
--   :cluster   STRING     the cluster
--   :group_id  STRING     the group
--   :since     TIMESTAMP  the first moment
--   :until     TIMESTAMP  the end
-- Columns: one row per change, the oldest first; the columns of group_health keep their names, and
--   last_time  time of the last row before the next change
WITH seen AS (
  SELECT round, round_time, ended, state, verdict, lag_status, findings,
    lag(round_time) OVER (ORDER BY round) AS earlier_time, lag(state) OVER (ORDER BY round) AS earlier_state,
    lag(verdict) OVER (ORDER BY round) AS earlier_verdict, lag(lag_status) OVER (ORDER BY round) AS earlier_lag_status,
    lag(findings) OVER (ORDER BY round) AS earlier_findings, lag(ended) OVER (ORDER BY round) AS earlier_ended,
    max(round_time) OVER () AS newest_time
  FROM group_health
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
    AND round_time >= :since AND round_time < :until AND cluster = :cluster AND group_id = :group_id
),
changes AS (
  SELECT *
  FROM seen
  WHERE earlier_time IS NULL OR earlier_time < round_time - INTERVAL 30 MINUTE OR ended IS DISTINCT FROM earlier_ended
    OR state IS DISTINCT FROM earlier_state OR verdict IS DISTINCT FROM earlier_verdict
    OR lag_status IS DISTINCT FROM earlier_lag_status OR findings IS DISTINCT FROM earlier_findings
)
SELECT round_time, coalesce(lead(earlier_time) OVER (ORDER BY round), newest_time) AS last_time, ended, state, verdict,
  lag_status, findings
FROM changes
ORDER BY round
