-- Which records could not be decoded? By topic and reason, those with the most first.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
--   :most      INT     most rows to return
-- Columns: one row per cluster, topic, kind and reason; the columns of the table quarantine keep their names, and
--   records      number of records
--   newest_time  timestamp of the newest of them; NULL when none has a valid one
--   newest_place partition and offset of the one with the highest offset
SELECT cluster, topic, kind, key_type, value_version, reason, CAST(sum(records) AS BIGINT) AS records,
  max(record_time) AS newest_time,
  max_by(concat(partition, ' ', coalesce(last_record_offset, record_offset)), coalesce(last_record_offset, record_offset)) AS newest_place
FROM quarantine_current
WHERE (:cluster IS NULL OR cluster = :cluster)
GROUP BY cluster, topic, kind, key_type, value_version, reason
ORDER BY records DESC, cluster, topic, kind, key_type NULLS LAST, value_version NULLS LAST, reason NULLS LAST
LIMIT :most
