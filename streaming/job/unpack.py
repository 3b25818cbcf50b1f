"""The operator's output, unpacked: packed rows of many tables to Arrow columns by table.

Both writers call it, the one on the driver and the one in the executors, so that they write the same values. A catch-up
has a million rows in a batch, a gigabyte as Python values: only some thousands are converted at a time, and the rest
stay in Arrow.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa

from streaming.groups import Rows
from streaming.tables import TABLES, to_arrow

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
