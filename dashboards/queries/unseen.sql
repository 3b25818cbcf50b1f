-- What was missed? Records that could not be decoded, and ranges deleted before we read them.
--
-- Parameters: none.
-- Columns: one row per cluster and kind with at least one.
--   cluster  its configured name
--   kind     quarantine: records that could not be decoded; gap: ranges of a topic, or times without rounds (a state
--            that was rebuilt is no such range)
--   number   number of records or ranges
SELECT cluster, 'quarantine' AS kind, CAST(sum(records) AS BIGINT) AS number FROM quarantine_current GROUP BY cluster
UNION ALL
SELECT cluster, 'gap' AS kind, count(*) AS number FROM gaps_current WHERE kind <> 'state' GROUP BY cluster
ORDER BY cluster, kind
