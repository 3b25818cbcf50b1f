"""What the job says of its own work."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import CLUSTER, DATE, INT, LONG, STRING, TIMESTAMP, Column, Table

BATCHES: Final = Table(
    "batches",
    "One row per batch of the job's query of a cluster, written at most a minute after its end; those of the last minute are lost when the job is killed",
    (
        CLUSTER,
        Column("query_id", STRING, "Spark's id of the query; a new one with a new checkpoint, whose batches begin at 0"),
        Column("batch", LONG, "Number of the batch"),
        Column("started_time", TIMESTAMP, "When it began, by the clock of the job's machine, UTC"),
        Column("event_date", DATE, "Day of started_time, UTC; partitions the table"),
        Column("duration_ms", LONG, "How long it took (Spark's triggerExecution), ms"),
        Column("latest_offset_ms", LONG, "Of that: looking for closed rounds; NULL for a batch that is run again"),
        Column("query_planning_ms", LONG, "Of that: planning the query"),
        Column("get_batch_ms", LONG, "Of that: handing the batch to the query"),
        Column("wal_commit_ms", LONG, "Of that: writing down what it reads, before it begins"),
        Column("add_batch_ms", LONG, "Of that: fetching, judging, and writing the tables"),
        Column("commit_offsets_ms", LONG, "Of that: writing down that it is done"),
        Column("rounds", INT, "Rounds that it took; NULL for a batch that is run again after a crash"),
        Column(
            "rounds_behind",
            INT,
            "Rounds that had closed and were left to later batches when it began: at least so many, as it looks at the next 2,000 records of the rounds topic. NULL with rounds",
        ),
        Column("input_rows", LONG, "Rows that the source handed over: one for each key and task, not one a record"),
        Column("written_rows", LONG, "Rows that it appended to all tables; a batch that is run again appends the missing"),
        Column("state_rows", LONG, "Keys in the state after it: groups, topics, partitions with trouble; NULL if unknown"),
        Column("state_bytes", LONG, "Memory of the state store by its own count, bytes; NULL if unknown"),
    ),
    key=("cluster",),
    newest_by=("started_time",),
    keep_days=35,
    time="started_time",
    every_batch=True,
    unique_by=("cluster", "query_id", "batch"),
    with_cluster=True,
)  # fmt: skip
