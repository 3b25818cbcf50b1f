-- Where are alerts sent, and do they arrive? Every target that the tables know, by its name.
--
-- A target's address is in no table. One that was taken out of the settings stays here as long as its rows do.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
-- Columns: one row per cluster and target.
--   cluster, target   the cluster whose alerts it gets, and its name
--   added_time        when it was first seen in the settings; NULL when that is older than the table
--   delivered_time    when it last took a message; NULL when it took none
--   refused_time      when it last refused one that has not been delivered since; NULL when there is none
--   delivered, failed, given_up, skipped, held  transitions by their newest outcome: failed ones will be tried again,
--     held ones wait for the end of a mute
SELECT cluster, target,
  min(CASE WHEN outcome = 'added' THEN attempt_time END) AS added_time,
  max(CASE WHEN outcome = 'delivered' THEN attempt_time END) AS delivered_time,
  max(CASE WHEN outcome IN ('failed', 'given_up') THEN attempt_time END) AS refused_time,
  CAST(sum(CASE WHEN outcome = 'delivered' THEN 1 ELSE 0 END) AS BIGINT) AS delivered,
  CAST(sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS BIGINT) AS failed,
  CAST(sum(CASE WHEN outcome = 'given_up' THEN 1 ELSE 0 END) AS BIGINT) AS given_up,
  CAST(sum(CASE WHEN outcome = 'skipped' THEN 1 ELSE 0 END) AS BIGINT) AS skipped,
  CAST(sum(CASE WHEN outcome = 'held' THEN 1 ELSE 0 END) AS BIGINT) AS held
FROM alert_deliveries_current
WHERE (:cluster IS NULL OR cluster = :cluster)
GROUP BY cluster, target
ORDER BY cluster, target
