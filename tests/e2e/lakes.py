"""Lakes as values: every row of every table, all columns, unordered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from streaming.tables import TABLES, LakeReader

__all__ = ["Lake", "contents", "differences"]

Lake = dict[str, Counter[str]]
"""Rows by table; a row is the text of its columns in order, which shows NULL, types and floats exactly."""


def contents(root: Path | str, where: str = "", without: Mapping[str, Collection[str]] | None = None) -> Lake:
    """All rows of a lake.

    Args:
        root: The lake.
        where: A clause for each table.
        without: Columns to leave out, by table.
    """
    reader = LakeReader(root)
    out = {table.name: set((without or {}).get(table.name, ())) for table in TABLES}
    return {
        name: Counter(
            _text({column: value for column, value in row.items() if column not in left_out})
            for row in reader.rows(f"SELECT * FROM {name} {where}")
        )
        for name, left_out in out.items()
    }


def differences(one: Lake, other: Lake) -> dict[str, tuple[list[str], list[str]]]:
    """Rows by table that only one of the two lakes has, a few of each; empty when they are equal."""
    return {
        table: (sorted((one[table] - other[table]).elements())[:3], sorted((other[table] - one[table]).elements())[:3])
        for table in one
        if one[table] != other[table]
    }


def _text(row: dict[str, Any]) -> str:
    return repr(list(row.items()))
