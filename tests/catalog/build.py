"""Rows and a small lake whose contents can be counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streaming.tables import DeltaLake, table_named
from tests.empty_lake import empty_lake


def row(table: str, **values: Any) -> list[Any]:
    return [{"cluster": "c", **values}.get(column.name) for column in table_named(table).columns]


def lag(day: int, partition: int) -> list[Any]:
    return row("lag", group_id="g", topic="t", partition=partition, round=day, event_date=day, ended=False)


def lake_of_five_rows(root: Path) -> DeltaLake:
    """Three rows of `lag` in three files of two days (1 and 3), a round, and a row of a table without days."""
    lake = empty_lake(root)
    lake.append("lag", [lag(1, 0), lag(3, 0)], "query", 0)
    lake.append("lag", [lag(3, 1)], "query", 1)
    lake.append("rounds", [row("rounds", round=7, round_time=90_061_000, event_date=1)], "query", 1)
    lake.append("quarantine", [row("quarantine", topic="t", partition=1, record_offset=5, event_date=2)], "query", 1)
    return lake
