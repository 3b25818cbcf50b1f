-- What takes the time of the newest batch of each cluster's query, for metrics?
--
-- Parameters: none.
-- Columns: one row per cluster with a batch, and phase with a known time.
--   phase          Spark's name of it
--   phase_seconds  its part of the batch's duration
SELECT cluster, phase, ms / 1000 AS phase_seconds
FROM (
  SELECT cluster, 'latestOffset' AS phase, latest_offset_ms AS ms FROM batches_current
  UNION ALL SELECT cluster, 'queryPlanning' AS phase, query_planning_ms AS ms FROM batches_current
  UNION ALL SELECT cluster, 'getBatch' AS phase, get_batch_ms AS ms FROM batches_current
  UNION ALL SELECT cluster, 'walCommit' AS phase, wal_commit_ms AS ms FROM batches_current
  UNION ALL SELECT cluster, 'addBatch' AS phase, add_batch_ms AS ms FROM batches_current
  UNION ALL SELECT cluster, 'commitOffsets' AS phase, commit_offsets_ms AS ms FROM batches_current
) AS phases
WHERE ms IS NOT NULL
ORDER BY cluster, phase
