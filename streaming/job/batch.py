"""What happens to the rows of a batch: unpacked, sorted by table, appended once.

The rows are collected in one action, and all tables are built from the same bytes. Spark would run the operator again
for every further action, and since 4.1 it fails with `STATE_STORE_COMMIT_VALIDATION_FAILED` unless an action reads
every state partition. A catch-up has a million rows in a batch, a gigabyte as Python values: only some thousands are
converted at a time, and the rest stay in Arrow.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from streaming.groups import Rows
from streaming.tables import TABLES, Lake, to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streaming.maintain import Pace

# Rows of one table that are Python's values at once, some 800 bytes each. Fewer, and Arrow's cost per call shows.
_UNPACKED = 20_000

# Untyped: the rows go straight into Arrow columns, so building the row objects again would be for nothing.
_DECODER = msgspec.msgpack.Decoder(list[list[list[Any]]])


def rows_by_table(packed: Iterable[bytes]) -> dict[str, pa.Table]:
    """Unpack the operator's output: the rows of each table that has some."""
    waiting: dict[str, list[list[Any]]] = {name: [] for name in Rows.__struct_fields__}
    made: dict[str, list[pa.Table]] = {}
    schemas = {table.name: table for table in TABLES}

    def make(name: str) -> None:
        made.setdefault(name, []).append(to_arrow(schemas[name], waiting[name]))
        waiting[name] = []

    with _uncollected():
        for payload in packed:
            for name, rows in zip(Rows.__struct_fields__, _DECODER.decode(payload), strict=True):
                if rows:
                    waiting[name].extend(rows)
                    if len(waiting[name]) >= _UNPACKED:
                        make(name)
        for name, rows in waiting.items():
            if rows:
                make(name)
    return {name: pa.concat_tables(parts) for name, parts in made.items()}


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


def batch_writer(
    lake: Lake, done: Callable[[int, dict[str, int]], None] | None = None, pace: Pace | None = None
) -> Callable[[DataFrame, int], None]:
    """Build the function for `foreachBatch`.

    Args:
        lake: Where the rows go.
        done: Called after each batch with its number and the rows written per table.
        pace: Is told when batches begin and end.
    """

    def write(batch: DataFrame, number: int) -> None:
        if pace is not None:
            pace.began(time.monotonic())
        # The id belongs to the checkpoint: a new checkpoint begins at batch 0 again and must not be taken for it.
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        packed = batch.toArrow().column("rows")
        tables = rows_by_table(payload for chunk in packed.iterchunks() for payload in chunk.to_pylist())
        written = {}
        for table in TABLES:
            if table.name in tables:
                written[table.name] = lake.append(table.name, tables[table.name], query, number)
        if pace is not None:
            pace.ended(time.monotonic())
        if done is not None:
            done(number, written)

    return write
