"""What happens to the rows of a batch: unpacked, each table's are appended once, by driver or executors (`job.writer`).

Both writers unpack alike, so that they write the same values. A catch-up has a million rows in a batch, a gigabyte as
Python values: only some thousands are converted at a time, and the rest stay in Arrow.

The operator's output is computed in one action, and all tables are made from the same bytes. Spark would run the
operator again for every further action, and since 4.1 it fails with `STATE_STORE_COMMIT_VALIDATION_FAILED` unless an
action reads every state partition. So a batch is collected at once, or kept where it was computed.

Where executors write, the output is unpacked where it is: one action runs the operator, turns its rows into Arrow
columns by table, keeps them on the executors' disks and tells the driver how many there are. Then the tasks write each
table's own as data files, which no reader sees yet, and the driver commits them as it commits everything else: through
delta-rs, with the same transaction id. So the driver holds no row, the operator runs once, and either writer completes
a batch that the other one began.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark import StorageLevel

from streaming.groups import Rows
from streaming.tables import (
    TABLES,
    DeltaLake,
    LakeUnwritableError,
    Table,
    file_sized,
    new_files,
    patiently,
    rows_of,
    table_named,
    to_arrow,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streaming.config import Writer
    from streaming.tables import Lake


# Rows of one table that are Python's values at once, some 800 bytes each. Fewer, and Arrow's cost per call shows.
_UNPACKED = 20_000

# Untyped: the rows go straight into Arrow columns, so building the row objects again would be for nothing.
_DECODER = msgspec.msgpack.Decoder(list[list[list[Any]]])


def rows_by_table(packed: Iterable[bytes]) -> dict[str, pa.Table]:
    """Unpack the operator's output: the rows of each table that has some."""
    made: dict[str, list[pa.Table]] = {}
    for name, rows in tables_in_pieces(packed):
        made.setdefault(name, []).append(rows)
    return {name: pa.concat_tables(parts) for name, parts in made.items()}


def tables_in_pieces(packed: Iterable[bytes]) -> Iterator[tuple[str, pa.Table]]:
    """The same, piece by piece: name of the table and some thousand of its rows, in their order."""
    waiting: dict[str, list[list[Any]]] = {name: [] for name in Rows.__struct_fields__}
    schemas = {table.name: table for table in TABLES}
    with _uncollected():
        for payload in packed:
            for name, rows in zip(Rows.__struct_fields__, _DECODER.decode(payload), strict=True):
                if rows:
                    waiting[name].extend(rows)
                    if len(waiting[name]) >= _UNPACKED:
                        yield name, to_arrow(schemas[name], waiting[name])
                        waiting[name] = []
        for name, rows in waiting.items():
            if rows:
                yield name, to_arrow(schemas[name], rows)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector away: it would look through every row again and again, for half of the time.

    Nothing here refers to itself, so that all of it goes when the last reference does.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


_PIECES = "table string, count long, rows binary"

# Rows of a file, written by one task. Larger files would leave cores idle, smaller ones are more work for maintenance
# and for every reader.
_FILE_ROWS = 250_000

# Bytes of a file's rows in memory, for rows with long names.
_FILE_BYTES = 256 * 1024 * 1024


def batch_writer(
    lake: Lake,
    done: Callable[[int, dict[str, int]], None] | None = None,
    writer: Writer = "delta-rs",
) -> Callable[[DataFrame, int], None]:
    """Build the function for `foreachBatch`.

    Args:
        lake: Where the rows go.
        done: Called after each batch with its number and the rows written per table.
        writer: What writes them, as `job.writer`. A lake that looks at the rows, as a rebuild's does, gets them here.
    """

    def write(batch: DataFrame, number: int) -> None:
        # The id belongs to the checkpoint: a new checkpoint begins at batch 0 again and must not be taken for it.
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if writer == "delta-rs" or not isinstance(lake, DeltaLake):
            written = _write_here(batch, lake, query, number)
        else:
            written = _write_by_executors(batch, lake, query, number)
        if done is not None:
            done(number, written)

    return write


def _write_here(batch: DataFrame, lake: Lake, query: str, number: int) -> dict[str, int]:
    """Collect the rows of a batch and append them from this process."""
    packed = batch.toArrow().column("rows")
    tables = rows_by_table(payload for chunk in packed.iterchunks() for payload in chunk.to_pylist())
    return {
        table.name: lake.append(table.name, tables[table.name], query, number)
        for table in TABLES
        if table.name in tables
    }


def _write_by_executors(batch: DataFrame, lake: DeltaLake, query: str, number: int) -> dict[str, int]:
    """Let the tasks write the rows; executors must reach the lake under the driver's name for it.

    Args:
        batch: Packed rows; computed once.
        lake: A lake with its tables.
        query: Id of the query.
        number: Number of the batch.

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
            if lake.is_written(table.name, query, number):
                written[table.name] = 0
            else:
                own = pieces.where(pieces["table"] == table.name).select("rows")
                files = _files(own.coalesce(-(-count // _FILE_ROWS)), table, lake)
                if sum(rows_of(file) for file in files) != count:
                    # A lost executor takes its pieces along, and Spark computes them again.
                    message = f"The tasks have not written all {count} rows of {table.name}: the batch runs again."
                    raise LakeUnwritableError(message)
                written[table.name] = count if lake.add_files(table.name, files, query, number) else 0
        return written
    finally:
        pieces.unpersist()


def _files(pieces: DataFrame, table: Table, lake: DeltaLake) -> list[AddAction]:
    """Write the rows of one table's pieces as files, each by the task that has them."""
    found = pieces.mapInArrow(_file_writer(table.name, lake.path(table.name)), "file binary").collect()
    return [msgspec.json.decode(file, type=AddAction) for (file,) in found]


def _file_writer(name: str, uri: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Build the function of a task."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = table_named(name)
        for rows in file_sized(_columns(batches), _FILE_ROWS, _FILE_BYTES):
            # The credentials are those of the executor's environment, or of its machine.
            for action in patiently(uri, partial(new_files, table, rows, uri)):
                file = pa.array([msgspec.json.encode(asdict(action))], pa.binary())
                yield pa.RecordBatch.from_arrays([file], names=["file"])

    return write


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
