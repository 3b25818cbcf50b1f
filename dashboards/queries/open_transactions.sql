-- Which open transactions block the offsets log? The partitions of __consumer_offsets that are blocked now.
--
-- Parameters:
--   :cluster   STRING  one cluster; NULL for all
-- Columns: one row per partition, the longest blocked first; the columns of open_transactions keep their names.
SELECT cluster, log_partition, held_since, held_offset, waiting, groups, producer_id, transactional_id
FROM open_transactions_current
WHERE held AND (:cluster IS NULL OR cluster = :cluster)
ORDER BY held_since, cluster, log_partition
