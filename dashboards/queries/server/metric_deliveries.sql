-- What do metrics say of the deliveries of alerts?
--
-- Parameters: none.
-- Columns: one row per cluster, target and outcome.
--   outcome     the newest of a transition: delivered, failed (it is tried again), given_up, skipped, held (by a mute)
--   deliveries  transitions with it, as far as the tables hold them
SELECT cluster, target, outcome, count(*) AS deliveries
FROM alert_deliveries_current
WHERE outcome <> 'added'
GROUP BY cluster, target, outcome
ORDER BY cluster, target, outcome
