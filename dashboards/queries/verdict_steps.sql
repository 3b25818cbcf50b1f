-- How did the verdicts go? Verdicts by the time of their decisions, in steps.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  the begin of the time
--   :until     TIMESTAMP  its end
--   :step      STRING     minute, hour or day
--   :each      STRING     yes: group by group; no: all groups together
-- Columns: one row per step, verdict, and group where that is asked for, the oldest first.
--   time           beginning of the step
--   cluster, group_id  the group; NULL for all together
--   verdict        the verdict
--   verdicts       how many
SELECT date_trunc(:step, record_time) AS time, CASE WHEN :each = 'yes' THEN cluster END AS cluster,
  CASE WHEN :each = 'yes' THEN group_id END AS group_id, verdict, count(*) AS verdicts
FROM (
  -- (A decision is judged again where the settings change. A group that decides topic by topic has a verdict for each:
  -- the worst is the decision's.)
  SELECT *,
    row_number() OVER (
      PARTITION BY cluster, group_id, decision ORDER BY round DESC, CASE verdict WHEN 'drifted' THEN 3 WHEN 'unverified' THEN 2 WHEN 'identical' THEN 1 ELSE 0 END DESC, topic NULLS FIRST
    ) AS place
  FROM drift
  WHERE event_date >= CAST(:since AS DATE) AND event_date <= CAST(:until AS DATE)
    AND record_time >= :since AND record_time < :until AND (:cluster IS NULL OR cluster = :cluster)
) AS d
WHERE place = 1
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4
