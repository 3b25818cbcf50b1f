"""Another engine for compaction and vacuum; Spark as one is in `tests/job/test_spark_writer.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import pytest

from streaming.maintain import Done, Maintainer
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.delta_table import open_table
from streaming.maintain.table.plan import Compaction
from streaming.maintain.table.rewrite import read
from streaming.tables import ALL_TABLES, DeltaLake, Table
from streaming.times import DAY_MS
from tests.maintain.build import KEEP, NOW, SMALL, TODAY, Writer, new_lake, row, rows_of

_DAY = date(1970, 1, 1) + timedelta(days=TODAY)


@dataclass
class _Engine:
    """Joins all files of a day, or nothing."""

    root: str
    joins: bool = True
    days: list[tuple[str, date]] = field(default_factory=list)
    vacuumed: list[str] = field(default_factory=list)

    def compact(self, table: Table, uri: str, day: date) -> None:
        assert uri == f"{self.root}/{table.name}"
        self.days.append((table.name, day))
        if self.joins:
            opened = open_table(self.root, table)
            assert opened is not None
            files = tuple(file for file in opened.files() if file.day == day)
            opened.replace(Compaction(day, files), read(table, files, opened.folder), NOW)

    def vacuum(self, uri: str) -> None:
        self.vacuumed.append(uri)


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    lake = new_lake(tmp_path)
    writer = Writer(lake)
    for day in (-1, 0):
        for number in range(5):
            writer.append("lag", row("lag", day, number))
    writer.round(0, 100)
    return lake


def _maintain(lake: DeltaLake, engine: _Engine) -> list[Done]:
    keep = {table.name: KEEP for table in ALL_TABLES}
    return list(Maintainer(lake.root, keep, SMALL, now=lambda: NOW, engine=engine).work())


def test_past_days_are_the_engines_and_the_current_one_is_ours(lake: DeltaLake) -> None:
    before = rows_of(lake, "lag")
    engine = _Engine(lake.root)
    done = _maintain(lake, engine)
    assert engine.days == [("lag", _DAY - timedelta(days=1))]
    assert [(d.day, d.files, d.rows, d.rows_after) for d in done if d.what == "compaction"] == [
        (_DAY, 5, 5, 5),
        (_DAY - timedelta(days=1), 5, 5, 5),
    ]
    assert rows_of(lake, "lag") == before
    assert engine.vacuumed == []  # nothing is old enough


def test_rows_without_a_day_are_ours(lake: DeltaLake) -> None:
    writer = Writer(lake)
    writer.batch = 50
    for number in range(3):
        writer.append("rebalance_churn", row("rebalance_churn", 0, number, record_time=-1, event_date=None))
    writer.round(2, 101)
    engine = _Engine(lake.root)
    keep = {table.name: KEEP for table in ALL_TABLES}
    later = NOW + 2 * DAY_MS
    done = list(Maintainer(lake.root, keep, SMALL, now=lambda: later, engine=engine).work())
    assert [(d.files, d.rows_after) for d in done if d.table == "rebalance_churn"] == [(3, 3)]
    assert {name for name, _ in engine.days} == {"lag"}


def test_an_engine_that_joins_nothing_is_asked_once_and_named(lake: DeltaLake) -> None:
    engine = _Engine(lake.root, joins=False)
    with pytest.raises(MaintenanceError, match=r"joined none of 5 files of \S+ in the table \S+lag: .* --engine"):
        _maintain(lake, engine)
    assert len(engine.days) == 1
