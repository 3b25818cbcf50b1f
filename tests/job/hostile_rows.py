"""Rows of every table with the worst values that a column can hold, as the core gives them (before `to_arrow`)."""

from __future__ import annotations

from typing import Any

from streaming.tables import Table
from streaming.tables.schema.table import (
    ASSIGNED,
    BINARY,
    BOOLEAN,
    BROKERS,
    CAUSES,
    DATE,
    DOUBLE,
    DRIFTED,
    FINDINGS,
    HOT_PARTITIONS,
    INT,
    LABELS,
    LONG,
    REPLACED,
    STRING,
    STRINGS,
    TASKS,
    TIMESTAMP,
    Type,
)

_LAST_DAY = 2_932_896
_LAST_MS = (_LAST_DAY + 1) * 86_400_000 - 1

# The first of each is harmless, the last is NULL; rows take them in turn.
_VALUES: dict[Type, list[Any]] = {
    STRING: ["a", "", "é😀'\"`\\\n\0", "x" * 40_000, None],
    INT: [1, -(2**31), 2**31 - 1, 2**40, None],
    LONG: [1, -(2**63), 2**63 - 1, 2**64 - 1, 9_007_199_254_740_993, None],
    DOUBLE: [0.1, float("nan"), float("inf"), -0.0, 5e-324, None],
    BOOLEAN: [True, False, None],
    BINARY: [b"\0\xff", b"", None],
    TIMESTAMP: [1_763_900_000_123, 0, _LAST_MS, _LAST_MS + 1, -1, 2**62, None],
    DATE: [20_415, 0, _LAST_DAY, _LAST_DAY + 1, None],
    STRINGS: [["a", ""], [], None],
    DRIFTED: [[["t", 0, "misplaced", None, [], "b"], ["", 2**31 - 1, "", "e", ["n", "o"], None]], [], None],
    FINDINGS: [[["f", 5_000, "x"], ["late", _LAST_MS, ""], ["never", _LAST_MS + 1, "y"]], []],
    HOT_PARTITIONS: [[["t", 0, 0.1], ["", 2**31 - 1, float("nan")]], [], None],
    REPLACED: [[["i", "x", "y"]], [], None],
    CAUSES: [[["c", "e", 2, ["m", ""], None, "1", None], ["", "", None, [], "t", None, "x"]], [], None],
    TASKS: [[["active", "0", [0, 2]], ["standby", "", []]], [], None],
    ASSIGNED: [[["t", [0, 1], None], ["u", [], "b"]], [], None],
    LABELS: [[["n", "v"]], [], None],
    BROKERS: [[[1, "h", "r", 5_000], [2**31 - 1, "", None, _LAST_MS + 1]], [], None],
}

_ROWS = 8
"""More than any column has values."""


def hostile_rows(table: Table, mark: str) -> list[list[Any]]:
    """Rows in the order of the table's columns.

    Args:
        table: The table.
        mark: Begins the topic, or else the group, of each row, so that rows of two calls differ.
    """
    names = [column.name for column in table.columns]
    marked = next((names.index(name) for name in ("topic", "group_id") if name in names), None)
    rows = []
    for number in range(_ROWS):
        row = [_VALUES[column.type][number % len(_VALUES[column.type])] for column in table.columns]
        if marked is not None:
            row[marked] = f"{mark}-{row[marked] or ''}"
        rows.append(row)
    return rows
