"""History: what an hour of it costs, how large a year of it is, and how fast it answers.

An hour of a thousand busy groups is rolled up from raw rows. Its rows, with noise, become the 8,760 hours of a year, as
maintenance leaves them: a file for each day.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from dashboards.query import history_queries
from streaming.maintain import Done, Maintainer
from streaming.tables import (
    HISTORY_TABLES,
    DeltaLake,
    LakeReader,
    Table,
    new_files,
    table_named,
)
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.figure import Figure, Say

_GROUPS = 1_000
"""Each has ten partitions, and seven in ten are busy."""

_DAYS, _PARTITION_DAYS = 365, 30
"""Days of history of groups, and of partitions."""

_CLUSTER = "bench"
_GROUP = "checkout-service-0500"
_END = datetime(2026, 6, 1, tzinfo=UTC)


def history(say: Say) -> list[Figure]:
    """Run the benchmark."""
    with TemporaryDirectory(prefix="evenkeel-history-") as folder:
        return _measured(Path(folder), say)


def _measured(folder: Path, say: Say) -> list[Figure]:
    raw, years = folder / "raw-hours", folder / "years"
    write_day(raw, DaySize(groups=_GROUPS, hours=3.5), say, end=_END)
    say("rolling up")
    hours = [d for d in _maintained(raw) if d.what == "history" and d.hour is not None]
    whole = hours[-1]
    figures = [
        Figure(
            "one hour rolled up",
            f"{whole.seconds:.1f} s",
            "",
            f"{_GROUPS:,} groups x 10, rounds every 10 s: {whole.rows:,} rows of history",
        )
    ]
    _write_years(raw, years, say)
    figures += [_space(years, table) for table in HISTORY_TABLES]
    return [*figures, *_answers(years, say)]


def _maintained(lake: Path) -> list[Done]:
    end = int((_END + timedelta(hours=1)).timestamp() * 1000)
    return list(Maintainer(str(lake), now=lambda: end).work())


def _write_years(raw: Path, years: Path, say: Say) -> None:
    reader = LakeReader(raw)
    lake = DeltaLake(str(years))
    lake.create(HISTORY_TABLES)
    of_hour = "SELECT * FROM {} WHERE hour = (SELECT max(hour) FROM {})"
    hour = {name: _arrow(reader, of_hour.format(name, name)) for name in ("group_hourly", "partition_hourly")}
    for name, days in (
        ("group_hourly", _DAYS),
        ("partition_hourly", _PARTITION_DAYS),
        ("group_daily", _DAYS),
    ):
        table = table_named(name)
        actions: list[AddAction | RemoveAction] = []
        for number in range(days):
            say(f"a year of {name}: day {number + 1} of {days}")
            day = (_END - timedelta(days=days - number)).date()
            rows = _day_of(hour["group_hourly" if name == "group_daily" else name], table, day)
            actions += new_files(table, rows, lake.path(name))
        opened = DeltaTable(lake.path(name))
        opened.create_write_transaction(actions, "append", opened.schema(), ["event_date"])
        DeltaTable(lake.path(name)).create_checkpoint()


def _arrow(reader: LakeReader, sql: str) -> pa.Table:
    names = list(reader.rows(sql + " LIMIT 1")[0])
    return pa.Table.from_pylist([{name: row[name] for name in names} for row in reader.rows(sql)])


def _day_of(hour: pa.Table, table: Table, day: date) -> pa.Table:
    """A day of rows like those of an hour, with noise: 24 of each key, or one in a table without hours."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    times: list[Any] = [begin + timedelta(hours=at) for at in range(24)] if table.name != "group_daily" else [None]
    rows = pa.concat_tables([_with_noise(hour, day.toordinal() * 24 + at) for at in range(len(times))])
    columns = {}
    for column in table.columns:
        if column.name == "event_date":
            columns["event_date"] = pa.array([day] * rows.num_rows, pa.date32())
        elif column.name == "hour":
            columns["hour"] = pa.array(times, pa.timestamp("us", "UTC")).take(
                pa.array(np.repeat(np.arange(len(times)), hour.num_rows))
            )
        else:
            columns[column.name] = rows[column.name].cast(column.type.arrow)
    return pa.table(columns)


def _with_noise(rows: pa.Table, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    for place, field in enumerate(rows.schema):
        if pa.types.is_integer(field.type) and field.name not in {
            "partition",
            "definition",
            "members_min",
            "members_max",
        }:
            noise = chance.integers(0, 50, rows.num_rows)
            rows = rows.set_column(place, field.name, pc.add(rows.column(place), pa.array(noise, pa.int64())))
        elif pa.types.is_floating(field.type) and "mean" in field.name:
            rows = rows.set_column(
                place, field.name, pc.multiply(rows.column(place), pa.array(chance.random(rows.num_rows)))
            )
    return rows


def _space(lake: Path, table: Table) -> Figure:
    actions = pa.table(DeltaTable(str(lake / table.name)).get_add_actions(flatten=True))
    rows, used = (pc.sum(actions[name]).as_py() for name in ("num_records", "size_bytes"))
    days = _PARTITION_DAYS if table.name == "partition_hourly" else _DAYS
    return Figure(
        f"  {table.name}, a day", f"{used / days / 1e6:.2f} MB", "", f"{rows // days:,} rows, {actions.num_rows} files"
    )


def _answers(lake: Path, say: Say) -> Iterator[Figure]:
    say("asking the history")
    began = time.monotonic()
    reader = LakeReader(lake)
    yield Figure("  opening the lake", f"{time.monotonic() - began:.2f} s", "under 1 s", f"{_DAYS} days")
    year, month = _END - timedelta(days=_DAYS), _END - timedelta(days=30)
    for name, since, aim in (
        ("group_hours", month, 1),
        ("partition_hours", month, 1),
        ("all_groups", month, 1),
        ("groups_compared", month, 1),
        ("group_hours", year, 2),
        ("group_days", year, 2),
        ("all_groups", year, 2),
        ("groups_compared", year, 2),
    ):
        query = history_queries()[name]
        values = {
            "cluster": _CLUSTER, "group_id": _GROUP, "since": since, "until": _END,
            "before": since - (_END - since) if since == month else year,
        }  # fmt: skip
        given: Any = {parameter: values[parameter] for parameter in query.parameters}
        began = time.monotonic()
        rows = len(reader.rows(query.duckdb, given))
        seconds = time.monotonic() - began
        span = "30 days" if since == month else f"{_DAYS} days"
        yield Figure(f"  {name}, {span}", f"{seconds:.2f} s", f"under {aim} s", f"{rows:,} rows")
