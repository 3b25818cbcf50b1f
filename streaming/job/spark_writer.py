"""Rows written by the executors, through Delta's own writer for Spark (`job.writer`).

The operator's output is unpacked where it is: one action runs the operator, turns its rows into Arrow columns by table,
keeps them on the executors' disks and tells the driver how many there are. Then each table reads its own from there. So
the driver holds no row, and the operator runs once (see `batch.py`).

The transaction ids are those of `DeltaLake.append`. Delta leaves out a write whose `txnVersion` is not greater than the
one that the table has for this `txnAppId` (`<=`, DeltaCommand.hasBeenExecuted), which is what `DeltaLake.append` does.
So either writer completes a batch that the other one began. An append reads nothing of the table: commits that delete
or join files beside it do not make it fail (ConflictChecker asks for read files, `isBlindAppend`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel

from streaming.job.unpack import tables_in_pieces
from streaming.tables import TABLES, DeltaLake, Table, application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPLIT = "table string, count long, rows binary"

# Rows of a file: a task each. Fewer files would leave cores idle, more would be work for maintenance. 250,000 rows of
# `lag` are some 3 MB, and a task takes a few seconds for them.
_FILE_ROWS = 250_000


def write_with_spark(batch: DataFrame, lake: DeltaLake, query: str, number: int) -> dict[str, int]:
    """Write the operator's output of one batch.

    Args:
        batch: Packed rows; computed once.
        lake: A lake with its tables, at a place that the executors reach under the same name.
        query: Id of the query.
        number: Number of the batch.

    Returns:
        Rows written by table; 0 for a table that had them, and no entry for one without rows.
    """
    split = batch.mapInArrow(_split, _SPLIT).persist(StorageLevel.DISK_ONLY)
    try:
        counts: dict[str, int] = {}
        for name, count in split.select("table", "count").collect():
            counts[name] = counts.get(name, 0) + count
        written = {}
        for table in TABLES:
            if table.name not in counts:
                continue
            written[table.name] = 0
            if not lake.is_written(table.name, query, number):
                _append(split, table, counts[table.name], lake.path(table.name), application(table.name, query), number)
                written[table.name] = counts[table.name]
        return written
    finally:
        split.unpersist()


def _append(split: DataFrame, table: Table, count: int, place: str, app: str, number: int) -> None:
    own = split.where(split["table"] == table.name).select("rows").coalesce(-(-count // _FILE_ROWS))
    schema = ", ".join(f"`{column.name}` {column.type.sql}" for column in table.columns)
    (
        own.mapInArrow(_columns, schema)
        .write.format("delta")
        .mode("append")
        .option("txnAppId", app)
        .option("txnVersion", number)
        .save(place)
    )


def _split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packed rows to a row per table and some thousand of its rows: its name, how many, the rows as an Arrow stream."""
    packed = (payload for batch in batches for payload in batch.column("rows").to_pylist())
    for name, rows in tables_in_pieces(packed):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        yield pa.RecordBatch.from_arrays(
            [pa.array([name]), pa.array([rows.num_rows]), pa.array([sink.getvalue().to_pybytes()])],
            names=["table", "count", "rows"],
        )


def _columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one table, as `_split` packs them."""
    for batch in batches:
        for packed in batch.column("rows"):
            yield from pa.ipc.open_stream(packed.as_buffer())
