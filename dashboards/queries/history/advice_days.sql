-- Up to which day was advice looked for? The newest day of each cluster.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
-- Columns: one row per cluster; the columns of the table advice_days keep their names.
SELECT cluster, event_date, first_day, period_days, groups, advices
FROM advice_days_current
WHERE (:cluster IS NULL OR cluster = :cluster)
ORDER BY cluster
