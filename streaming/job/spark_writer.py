"""Rows written by the executors (`job.writer`).

The operator's output is unpacked where it is: one action runs the operator, turns its rows into Arrow columns by table,
keeps them on the executors' disks and tells the driver how many there are. Then each table reads its own from there. So
the driver holds no row, and the operator runs once (see `batch.py`).

Tables in a folder are written through Delta's own writer for Spark. On an object store that would lose commits: none of
the log stores of Delta 4.4 writes a commit to S3 only if it is not there, and S3A of Hadoop 3.5 makes a put conditional
for callers that ask for it, which they do not (docs/object-stores.md). So there the tasks write data files, which no
reader sees yet, and the driver commits them through delta-rs, as it commits everything else.

The transaction ids are those of `DeltaLake.append`, so that either writer completes a batch that the other one began.
All leave out what the table has already: Delta skips a write whose `txnVersion` is not greater than the table's own
for that `txnAppId` (`DeltaCommand.hasBeenExecuted` tests `>=`; a test does, too). Commits beside it that delete or join
files do not make an append fail: it reads nothing of the table, and Delta's `ConflictChecker` compares only with what
was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark import StorageLevel

from streaming.job.unpack import tables_in_pieces
from streaming.stores import on_object_store
from streaming.tables import (
    TABLES,
    LakeUnwritableError,
    Table,
    application,
    file_sized,
    new_files,
    patiently,
    rows_of,
    table_named,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streaming.tables import DeltaLake

_PIECES = "table string, count long, rows binary"

# Rows of a file, written by one task. Larger files would leave cores idle, smaller ones are more work for maintenance
# and for every reader.
_FILE_ROWS = 250_000

# Bytes of a file's rows in memory, for rows with long names.
_FILE_BYTES = 256 * 1024 * 1024


def write_with_spark(
    batch: DataFrame, lake: DeltaLake, query: str, number: int, *, catalog: str | None = None, collected: int = 0
) -> dict[str, int]:
    """Write the operator's output of one batch.

    Args:
        batch: Packed rows; computed once.
        lake: A lake with its tables, at a place that the executors reach under the same name.
        query: Id of the query.
        number: Number of the batch.
        catalog: Schema in which the tables are registered: they are written under their names. None writes to their
            places, as do tables on an object store.
        collected: A table of at most so many rows is collected, and appended by the driver.

    Returns:
        Rows written by table; 0 for a table that had them, and no entry for one without rows.
    """
    pieces = batch.mapInArrow(_pieces, _PIECES).persist(StorageLevel.DISK_ONLY)
    try:
        counts: dict[str, int] = {}
        for name, count in pieces.select("table", "count").collect():
            counts[name] = counts.get(name, 0) + count
        written = {}
        for table in TABLES:
            count = counts.get(table.name, 0)
            if not count:
                continue
            own = pieces.where(pieces["table"] == table.name).select("rows")
            if count <= collected:
                written[table.name] = lake.append(table.name, _collect(own), query, number)
            elif lake.is_written(table.name, query, number):
                written[table.name] = 0
            else:
                own = own.coalesce(-(-count // _FILE_ROWS))
                if on_object_store(lake.path(table.name)):
                    files = _files(own, table, lake)
                    if sum(rows_of(file) for file in files) != count:
                        # (A lost executor takes its pieces along, and Spark computes them again.)
                        message = f"The tasks have not written all {count} rows of {table.name}: the batch runs again."
                        raise LakeUnwritableError(message)
                    is_new = lake.add_files(table.name, files, query, number)
                    written[table.name] = count if is_new else 0
                else:
                    _append(own.mapInArrow(_columns, _schema(table)), table, lake, query, number, catalog)
                    written[table.name] = count
        return written
    finally:
        pieces.unpersist()


def _append(rows: DataFrame, table: Table, lake: DeltaLake, query: str, number: int, catalog: str | None) -> None:
    writer = (
        rows.write.format("delta")
        .mode("append")
        .option("txnAppId", application(table.name, query))
        .option("txnVersion", number)
    )
    if catalog is None:
        writer.save(lake.path(table.name))
    else:
        writer.saveAsTable(f"{catalog}.{table.name}")


def _files(pieces: DataFrame, table: Table, lake: DeltaLake) -> list[AddAction]:
    """Write the rows of one table's pieces as files, each by the task that has them."""
    found = pieces.mapInArrow(_file_writer(table.name, lake.path(table.name)), "file binary").collect()
    return [msgspec.json.decode(file, type=AddAction) for (file,) in found]


def _file_writer(name: str, uri: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Build the function of a task."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = table_named(name)
        for rows in file_sized(_columns(batches), _FILE_ROWS, _FILE_BYTES):
            # (The credentials are those of the executor's environment, or of its machine.)
            for action in patiently(uri, partial(new_files, table, rows, uri)):
                file = pa.array([msgspec.json.encode(asdict(action))], pa.binary())
                yield pa.RecordBatch.from_arrays([file], names=["file"])

    return write


def _schema(table: Table) -> str:
    return ", ".join(f"`{column.name}` {column.type.sql}" for column in table.columns)


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packed rows as pieces: name of the table, how many rows, the rows as an Arrow stream."""
    packed = (payload for batch in batches for payload in batch.column("rows").to_pylist())
    for name, rows in tables_in_pieces(packed):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        columns = [pa.array([name]), pa.array([rows.num_rows]), pa.array([sink.getvalue().to_pybytes()])]
        yield pa.RecordBatch.from_arrays(columns, names=["table", "count", "rows"])


def _columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one table's pieces."""
    for batch in batches:
        for packed in batch.column("rows"):
            yield from pa.ipc.open_stream(packed.as_buffer())


def _collect(pieces: DataFrame) -> pa.Table:
    """The same as one table, in this process."""
    packed = pieces.toArrow()
    return pa.Table.from_batches(_columns(iter(packed.to_batches())))
