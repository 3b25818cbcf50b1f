"""A lake after a day, a month and a year: its size, and what an append and its readers cost.

A day of a thousand busy groups is written as the job writes it, and maintained. Its files then stand for every day that
retention keeps: each day of a table has links to them, and log entries with their statistics, shifted to that day. So
readers open and read as many files, rows and bytes as there would be; only the times inside the files repeat.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from streaming.maintain import Maintainer
from streaming.tables import ALL_TABLES, DeltaLake, LakeReader, Table
from tests.benchmarks.day_of_rows import DaySize, write_day
from tests.benchmarks.figure import Figure, Say

_BATCHES_A_DAY = 8_640
_AGES = (1, 35, 365)
"""Days after which the lake is looked at."""

_BATCHES = 60
"""Appended at each age."""


def ages(say: Say, groups: int = 100) -> list[Figure]:
    """Run the benchmark.

    Args:
        say: Shows the progress.
        groups: Groups of ten partitions each.
    """
    with TemporaryDirectory(prefix="evenkeel-ages-") as name:
        folder, today = Path(name), datetime.now(UTC).date()
        day, batch = _closed_day(folder / "day", today, groups, say)
        figures = [_of_a_day(table, day[table.name]) for table in ALL_TABLES if table.name in day]
        for age in _AGES:
            say(f"a lake of {age} days")
            root = folder / f"age-{age}"
            _write_lake(root, day, today, age)
            figures += _measured(root, batch, age, say)
            shutil.rmtree(root)
        return figures


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the closed day: where it lies, its bytes, and its statistics as Delta's log has them."""

    path: Path
    size: int
    stats: Mapping[str, Any]


def _closed_day(root: Path, today: date, groups: int, say: Say) -> tuple[dict[str, list[_File]], dict[str, pa.Table]]:
    """Yesterday's files by table, maintained; and the rows of its last batch, with today's date."""
    end = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(seconds=10)
    made = write_day(root, DaySize(groups=groups), say, end=end)
    made.next_round()  # today's first: now yesterday is closed
    batch = {
        table.name: rows
        for table in ALL_TABLES
        if (root / table.name).is_dir() and (rows := _newest_rows(root / table.name, today)) is not None
    }
    # Twice: the history that is written now is joined once it has rested.
    for now in (datetime.now(UTC), datetime.now(UTC) + timedelta(hours=3)):
        for piece in Maintainer(str(root), now=partial(_ms, now)).work():
            say(f"maintaining the day: {piece.what} of {piece.table}")
    found = {}
    for table in ALL_TABLES:
        if (root / table.name).is_dir() and (files := _files(root / table.name, end.date())):
            found[table.name] = files
    return found, batch


def _newest_rows(folder: Path, today: date) -> pa.Table | None:
    files = sorted(folder.glob("event_date=*/*.parquet"), key=lambda path: pq.read_metadata(path).num_rows)
    if not files:
        return None
    # The median file: the first round has the decisions of all groups.
    rows = pq.read_table(files[len(files) // 2], partitioning=None)
    return rows.append_column("event_date", pa.repeat(pa.scalar(today, pa.date32()), rows.num_rows))


def _files(folder: Path, day: date) -> list[_File]:
    stats = {}
    for commit in (folder / "_delta_log").glob("*.json"):
        for line in commit.read_text("utf-8").splitlines():
            if (add := json.loads(line).get("add")) is not None:
                stats[add["path"]] = json.loads(add["stats"])
    paths = pa.table(DeltaTable(str(folder)).get_add_actions())["path"].to_pylist()
    files = [folder / unquote(path) for path in paths if f"event_date={day}" in path]
    return [_File(path, path.stat().st_size, stats[str(path.relative_to(folder))]) for path in files]


def _of_a_day(table: Table, files: list[_File]) -> Figure:
    size, rows = sum(file.size for file in files), sum(int(file.stats["numRecords"]) for file in files)
    days = table.keep_days or 400
    return Figure(
        f"{table.name}, a day",
        f"{size / 1e6:,.1f} MB",
        "",
        f"{rows:,} rows, files: {len(files)}; kept {days} days: {size * days / 1e9:,.1f} GB",
    )


def _write_lake(root: Path, day: Mapping[str, list[_File]], today: date, age: int) -> None:
    lake = DeltaLake(str(root))
    lake.create(ALL_TABLES)
    for table in ALL_TABLES:
        if table.name not in day:
            continue
        actions: list[AddAction | RemoveAction] = []
        for back in range(1, min(age, (table.keep_days or 400)) + 1):
            actions += _linked(root / table.name, table, day[table.name], today - timedelta(days=back), back - 1)
        opened = DeltaTable(lake.path(table.name))
        opened.create_write_transaction(actions, "append", opened.schema(), list(table.partition_by))
        DeltaTable(lake.path(table.name)).create_checkpoint()


def _linked(folder: Path, table: Table, files: list[_File], day: date, back: int) -> Iterator[AddAction]:
    (folder / f"event_date={day}").mkdir()
    for file in files:
        path = f"event_date={day}/{file.path.name}"
        os.link(file.path, folder / path)
        stats = json.dumps(_shifted(table, file.stats, back))
        yield AddAction(path, file.size, {"event_date": day.isoformat()}, 0, data_change=True, stats=stats)


def _shifted(table: Table, stats: Mapping[str, Any], back: int) -> dict[str, Any]:
    """Statistics of the same rows, so many days earlier."""
    times = {c.name for c in table.columns if pa.types.is_timestamp(c.type.arrow)}
    numbers = {"round", "decision"}

    def earlier(name: str, value: Any) -> Any:
        if name in times:
            at = datetime.fromisoformat(value) - timedelta(days=back)
            return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return value - back * _BATCHES_A_DAY if name in numbers else value

    bounds = {
        bound: {name: earlier(name, value) for name, value in stats[bound].items()}
        for bound in ("minValues", "maxValues")
    }
    return {**stats, **bounds}


def _measured(root: Path, batch: Mapping[str, pa.Table], age: int, say: Say) -> Iterator[Figure]:
    actions = {t.name: pa.table(DeltaTable(str(root / t.name)).get_add_actions(flatten=True)) for t in ALL_TABLES}
    files = {name: table.num_rows for name, table in actions.items()}
    used = sum(pc.sum(table["size_bytes"]).as_py() or 0 for table in actions.values())
    most = max(files, key=lambda name: files[name])
    old = f"after {age} days" if age > 1 else "after a day"
    yield Figure(f"the lake {old}", f"{used / 1e9:,.1f} GB", "", f"{sum(files.values()):,} files")
    yield Figure("  files in one table", f"{files[most]:,}", "under 1,500", most)
    say(f"appends {old}")
    with TemporaryDirectory() as folder:
        for name, rows in batch.items():
            pq.write_table(rows, Path(folder) / f"{name}.parquet")
        job, reader = (_role(role, root, folder) for role in ("job", "reader"))
    yield Figure("  one append, the slowest table", f"{1000 * job['slowest']:,.0f} ms", "under 200 ms", job["table"])
    yield Figure("  all tables of a batch", f"{1000 * job['batch']:,.0f} ms", "", f"median of {_BATCHES}")
    yield Figure("  memory that appends take in the job", f"{job['memory'] / 2**20:,.0f} MB")
    yield Figure("  LakeReader opens it", f"{reader['open']:.2f} s", "under 1 s", f"{reader['memory'] / 2**20:,.0f} MB")
    yield Figure("  a group's month of lag", f"{reader['lag']:.2f} s", "under 1 s", f"{reader['lag_rows']:,} rows read")
    yield Figure("  a group's month of health", f"{reader['health']:.2f} s", "under 1 s")


def _role(role: str, root: Path, folder: str) -> dict[str, Any]:
    """What a process of its own measures, so that its memory is its own."""
    command = [sys.executable, "-m", "tests.benchmarks.ages", role, str(root), folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the {role} of a lake could not be measured")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


# One process on an aged lake, measured from inside.

_GROUP = "checkout-service-0050"


def _play_role(role: str, root: str, folder: str) -> None:
    """Measure one role; prints the figures as JSON."""
    logging.disable(logging.WARNING)
    found = _job(root, folder) if role == "job" else _reader(root)
    sys.stdout.write(json.dumps(found))


def _job(root: str, folder: str) -> dict[str, Any]:
    rows = {path.stem: pq.read_table(path) for path in Path(folder).iterdir()}
    before = psutil.Process().memory_info().rss
    lake = DeltaLake(root)
    times: dict[str, list[float]] = {name: [] for name in rows}
    for batch in range(_BATCHES):
        for name, table in rows.items():
            began = time.perf_counter()
            lake.append(name, table, "bench", batch)
            times[name].append(time.perf_counter() - began)
    slowest = max(times, key=lambda name: median(times[name]))
    return {
        "slowest": median(times[slowest]),
        "table": slowest,
        "batch": median(sum(parts) for parts in zip(*times.values(), strict=True)),
        "memory": psutil.Process().memory_info().rss - before,
    }


def _reader(root: str) -> dict[str, Any]:
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    reader = LakeReader(root)
    opened = time.perf_counter() - began
    since = datetime.now(UTC).date() - timedelta(days=30)
    found: dict[str, Any] = {"open": opened}
    for name, columns in (("lag", "max(lag)"), ("health", "max(lag_total)")):
        table = "group_health" if name == "health" else "lag"
        began = time.perf_counter()
        rows = reader.rows(
            f"SELECT event_date, {columns}, count(*) AS n FROM {table} "
            "WHERE group_id = ? AND event_date >= ? GROUP BY 1",
            [_GROUP, since],
        )
        found[name] = time.perf_counter() - began
        found[f"{name}_rows"] = sum(row["n"] for row in rows)
    return {**found, "memory": psutil.Process().memory_info().rss - before}


if __name__ == "__main__":
    _play_role(sys.argv[1], sys.argv[2], sys.argv[3])
