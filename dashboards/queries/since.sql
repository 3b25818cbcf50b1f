-- Since when has each group been drifting, or its lag been bad?
--
-- Drift in several decisions in a row counts as one drift, and so does lag with one status over any number of rounds.
--
-- Parameters:
--   :since  TIMESTAMP  how far to look back; anything older counts as this time or a little later
-- Columns: one row per group that has drifted, or whose lag is bad.
--   cluster, group_id  the group
--   drifted_since      time of the first of its drifted decisions in a row; NULL if the newest did not drift
--   lag_since          time of the first of the rounds in a row with the present lag_status; NULL if that is fine
WITH bad AS (
  SELECT cluster, group_id, verdict, lag_status
  FROM group_health_current
  WHERE verdict = 'drifted' OR lag_status NOT IN ('ok', 'no_commit')
),
judged AS (
  -- (A group that decides topic by topic has a verdict for each: it has drifted if one of them has.)
  SELECT d.cluster, d.group_id, d.decision, min(d.record_time) AS record_time,
    max(CASE WHEN d.verdict = 'drifted' THEN 1 ELSE 0 END) AS has_drifted
  FROM (SELECT *, max(round) OVER (PARTITION BY cluster, group_id, decision) AS newest FROM drift) AS d
  JOIN bad AS o ON o.cluster = d.cluster AND o.group_id = d.group_id AND o.verdict = 'drifted'
  WHERE d.event_date >= CAST(:since AS DATE) AND d.record_time >= :since AND d.round = d.newest
  GROUP BY d.cluster, d.group_id, d.decision
),
decisions AS (
  SELECT *, max(CASE WHEN has_drifted = 0 THEN decision END) OVER (PARTITION BY cluster, group_id) AS last_sound
  FROM judged
),
drifted AS (
  SELECT cluster, group_id, min(record_time) AS drifted_since
  FROM decisions
  WHERE has_drifted = 1 AND decision > coalesce(last_sound, -1)
  GROUP BY cluster, group_id
),
other_status AS (
  SELECT o.cluster, o.group_id, max(h.round) AS round
  FROM bad AS o
  JOIN group_health AS h ON h.cluster = o.cluster AND h.group_id = o.group_id AND h.lag_status <> o.lag_status
  WHERE h.event_date >= CAST(:since AS DATE) AND h.round_time >= :since AND o.lag_status NOT IN ('ok', 'no_commit')
  GROUP BY o.cluster, o.group_id
),
lagging AS (
  SELECT o.cluster, o.group_id, min(h.round_time) AS lag_since
  FROM bad AS o
  JOIN group_health AS h ON h.cluster = o.cluster AND h.group_id = o.group_id AND h.lag_status = o.lag_status
  LEFT JOIN other_status AS b ON b.cluster = o.cluster AND b.group_id = o.group_id
  WHERE h.event_date >= CAST(:since AS DATE) AND h.round_time >= :since AND o.lag_status NOT IN ('ok', 'no_commit')
    AND h.round > coalesce(b.round, -1)
  GROUP BY o.cluster, o.group_id
)
SELECT o.cluster, o.group_id, d.drifted_since, l.lag_since
FROM bad AS o
LEFT JOIN drifted AS d ON d.cluster = o.cluster AND d.group_id = o.group_id
LEFT JOIN lagging AS l ON l.cluster = o.cluster AND l.group_id = o.group_id
WHERE d.drifted_since IS NOT NULL OR l.lag_since IS NOT NULL
ORDER BY o.cluster, o.group_id
