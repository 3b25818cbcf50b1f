"""Rows and lakes for the tests of maintenance."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from streaming.maintain import Done, Maintainer
from streaming.tables import ALL_TABLES, DeltaLake, LakeReader, table_named
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake

TODAY = time.time_ns() // 1_000_000 // DAY_MS
"""Today, in days since the epoch: files carry the time at which they are really written."""

NOW = (TODAY + 1) * DAY_MS - 1

KEEP = 5
"""Days that every table keeps in these tests."""


def new_lake(root: Path) -> DeltaLake:
    return empty_lake(root / "lake", ALL_TABLES)


def row(table: str, day: int, number: int, **values: Any) -> list[Any]:
    """A row of a round or decision `number` on a day (days before today as negative numbers)."""
    time_ms = (TODAY + day) * DAY_MS + number
    given = {
        "cluster": "c",
        "group_id": "g",
        "ended": False,
        "round": number,
        "decision": number,
        "revision": 1,
        "round_time": time_ms,
        "record_time": time_ms,
        "attempt_time": time_ms,
        "event_date": TODAY + day,
        "findings": [],
        **values,
    }
    return [given.get(column.name) for column in table_named(table).columns]


class Writer:
    """Appends batches as the job does."""

    def __init__(self, lake: DeltaLake) -> None:
        self.lake = lake
        self.batch = 0

    def append(self, table: str, *rows: list[Any]) -> int:
        self.batch += 1
        return self.lake.append(table, list(rows), "query", self.batch)

    def round(self, day: int, number: int) -> int:
        return self.append("rounds", row("rounds", day, number))


def maintain(lake: DeltaLake, keep: int = KEEP, now: int = NOW) -> list[Done]:
    keep_days = {table.name: keep for table in ALL_TABLES}
    return list(Maintainer(lake.root, keep_days, now=lambda: now).work())


def rows_of(lake: DeltaLake, name: str) -> Counter[str]:
    """All rows of a table or view, as often as they are there."""
    return rows_by_sql(LakeReader(lake.root), f'SELECT * FROM "{name}"')


def kept(lake: DeltaLake, table: str) -> Counter[str]:
    """Rows of days that are kept."""
    return rows_by_sql(LakeReader(lake.root), kept_sql(table))


def kept_sql(table: str) -> str:
    return f"SELECT * FROM {table} WHERE event_date >= DATE '1970-01-01' + {TODAY - KEEP}"


def rows_by_sql(reader: LakeReader, sql: str) -> Counter[str]:
    return Counter(map(repr, reader.rows(sql)))


def files_of(lake: DeltaLake) -> Mapping[str, int]:
    return {table.name: len(DeltaTable(lake.path(table.name)).file_uris()) for table in ALL_TABLES}
