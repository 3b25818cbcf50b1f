-- What could be changed in the groups, why, and what does it cost? The advice that holds.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :group_id  STRING  one group; NULL for all
--   :kind      STRING  one kind of advice; NULL for all
-- Columns: one row per group and kind of advice; the columns of the table advice keep their names.
SELECT cluster, group_id, kind, event_date, since, period_days, events, saved, unit, advice, evidence, cost, details
FROM advice_current
WHERE (:cluster IS NULL OR cluster = :cluster) AND (:group_id IS NULL OR group_id = :group_id)
  AND (:kind IS NULL OR kind = :kind)
ORDER BY cluster, group_id, kind
