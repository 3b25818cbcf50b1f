-- How did the job's batches go? Those of a time, and the newest of them.
--
-- Parameters:
--   :cluster   STRING     one cluster; NULL for all
--   :since     TIMESTAMP  how far to look back
-- Columns: one row per cluster with a batch; times are in ms, NULL where they are not known of any batch.
--   batches                       how many there were
--   duration_median, duration_max how long they took
--   look_median, plan_median, read_and_write_median, checkpoint_median  median of the phases: looking for rounds;
--                                 planning; fetching, judging and writing the tables; writing down offsets and end
--   rounds, rounds_max            rounds in all of them, and most in one
--   input_rows, written_rows      rows read by the operator, and appended to the tables, in all of them
--   started_time                  when the newest of them began, by the clock of the job's machine
--   rounds_behind                 rounds that the newest left to later ones; NULL when it was run again
--   state_rows, state_bytes       of the newest
SELECT cluster, count(*) AS batches, median(duration_ms) AS duration_median, max(duration_ms) AS duration_max,
  median(latest_offset_ms) AS look_median, median(query_planning_ms + get_batch_ms) AS plan_median,
  median(add_batch_ms) AS read_and_write_median, median(wal_commit_ms + commit_offsets_ms) AS checkpoint_median,
  CAST(sum(rounds) AS BIGINT) AS rounds, max(rounds) AS rounds_max,
  CAST(sum(input_rows) AS BIGINT) AS input_rows, CAST(sum(written_rows) AS BIGINT) AS written_rows,
  max(started_time) AS started_time,
  max(CASE WHEN ago = 1 THEN rounds_behind END) AS rounds_behind,
  max(CASE WHEN ago = 1 THEN state_rows END) AS state_rows,
  max(CASE WHEN ago = 1 THEN state_bytes END) AS state_bytes
FROM (
  SELECT *, row_number() OVER (PARTITION BY cluster ORDER BY started_time DESC, batch DESC) AS ago
  FROM batches
  WHERE event_date >= CAST(:since AS DATE) AND started_time >= :since AND (:cluster IS NULL OR cluster = :cluster)
) AS each
GROUP BY cluster
ORDER BY cluster
