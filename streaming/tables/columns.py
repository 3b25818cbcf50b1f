"""Rows of the core into Arrow columns: ms into TIMESTAMP, days into DATE, lists into structs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from streaming.tables.schema import Column, Table
from streaming.tables.schema.types import ASSIGNED, DATE, DRIFTED, FINDINGS, INT, LABELS, LONG, REPLACED, TIMESTAMP
from streaming.times import DAY_MS

__all__ = ["named_to_arrow", "to_arrow"]

# 9999-12-31, the last day that every engine and Python can show. A timestamp in a broken record can be any int64:
# what is no time becomes NULL.
_LAST_DAY = 2_932_896
_LAST_MS = (_LAST_DAY + 1) * DAY_MS - 1

_BOUNDS = {INT: (-(2**31), 2**31 - 1), LONG: (-(2**63), 2**63 - 1)}


def to_arrow(table: Table, rows: list[list[Any]]) -> pa.Table:
    """Build the Arrow table of rows whose fields stand in the order of the columns.

    Without the columns' comments: delta-rs refuses to append to a table that was created with another wording.
    """
    values = zip(*rows, strict=True) if rows else ([] for _ in table.columns)
    arrays = [_array(column, list(cells)) for column, cells in zip(table.columns, values, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in table.columns])


def named_to_arrow(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The same of rows by name; a column that a row does not name is NULL."""
    return to_arrow(table, [[row.get(column.name) for column in table.columns] for row in rows])


def _array(column: Column, cells: list[Any]) -> pa.Array:
    kind = column.type
    if kind is TIMESTAMP:
        return pa.array([_time(ms) for ms in cells], pa.timestamp("ms", "UTC")).cast(kind.arrow)
    if kind is DATE:
        return pa.array([_day(day) for day in cells], pa.int32()).cast(kind.arrow)
    if kind is FINDINGS:
        cells = [[(name, _micros(since), detail) for name, since, detail in cell] for cell in cells]
    elif kind in (DRIFTED, REPLACED, ASSIGNED, LABELS):
        cells = [cell if cell is None else [tuple(item) for item in cell] for cell in cells]
    try:
        return pa.array(cells, kind.arrow)
    except (pa.ArrowInvalid, OverflowError):
        # Numbers in hostile records can be beyond any type (a step from -2^63 to 2^63 - 1): they end at its bounds.
        if kind not in _BOUNDS:
            raise
        low, high = _BOUNDS[kind]
        return pa.array([None if cell is None else min(max(cell, low), high) for cell in cells], kind.arrow)


def _time(ms: int | None) -> int | None:
    return ms if ms is not None and 0 <= ms <= _LAST_MS else None


def _micros(ms: int) -> int | None:
    return ms * 1000 if 0 <= ms <= _LAST_MS else None


def _day(day: int | None) -> int | None:
    return day if day is not None and 0 <= day <= _LAST_DAY else None
