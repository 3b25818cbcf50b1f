-- What do metrics say of the newest batch of each cluster's query?
--
-- Parameters: none.
-- Columns: one row per cluster with a batch; the columns of the table batches keep their names, and
--   duration_seconds  duration_ms, in seconds
SELECT cluster, started_time, duration_ms / 1000 AS duration_seconds, rounds, rounds_behind, input_rows, written_rows,
  state_rows, state_bytes
FROM batches_current
ORDER BY cluster
