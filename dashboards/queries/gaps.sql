-- Where has history a hole? Ranges deleted before we read them, and times without rounds, the newest first.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :most      INT     most rows to return
-- Columns: one row per gap; the columns of the table gaps keep their names.
SELECT cluster, kind, topic, partition, from_offset, to_offset, from_time, to_time, reason
FROM gaps_current
WHERE (:cluster IS NULL OR cluster = :cluster)
ORDER BY to_time DESC NULLS LAST, cluster, kind, topic NULLS LAST, partition NULLS LAST, from_offset DESC NULLS LAST,
  from_time DESC NULLS LAST
LIMIT :most
