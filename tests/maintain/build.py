"""Rows and lakes for the tests of maintenance."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from streaming.maintain import Done, Maintainer
from streaming.tables import ALL_TABLES, DeltaLake, LakeReader, table_named
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake

HOUR_MS = 3_600_000
INTERVAL_MS = 300_000

Batch = dict[str, list[list[Any]]]


def at(table: str, time_ms: int, **values: Any) -> list[Any]:
    return row(
        table,
        0,
        0,
        round_time=time_ms,
        record_time=time_ms,
        event_date=time_ms // DAY_MS,
        topic="t",
        partition=0,
        **values,
    )


def life(chance: random.Random, start: int, hours: int, interval_ms: int = INTERVAL_MS) -> Iterator[Batch]:
    """Batches of a round each, of two groups."""
    owed: list[tuple[int, Batch]] = []
    elapsed = 0
    for number in range(hours * HOUR_MS // interval_ms):
        time_ms = start + number * interval_ms + chance.randrange(1_000)
        elapsed += interval_ms
        batch: Batch = {name: [] for name in ("rebalance_churn", "drift", "lag", "group_health", "rounds")}
        for group in "ab":
            if number % 3 and chance.random() < 0.5:
                continue
            value = chance.choice((None, 0, 5, 50))
            status = "unknown" if value is None else "ok"
            common = {"group_id": group, "round": number, "lag_status": status, "commits": chance.randrange(3)}
            offsets = {"committed_offset": number * 2, "high_watermark": number * 2 + (value or 0)}
            batch["lag"].append(at("lag", time_ms, lag=value, rewound_by=0, **common, **offsets))
            verdict = chance.choice(("identical", "drifted"))
            batch["group_health"].append(
                at("group_health", time_ms, lag_total=value, members=2, verdict=verdict, state="Stable", **common)
            )
        if chance.random() < 0.2:
            decision = {"group_id": chance.choice("ab"), "decision": number, "kind": "rebalance"}
            batch["rebalance_churn"].append(at("rebalance_churn", time_ms, revision=1, partitions_moved=3, **decision))
            batch["drift"].append(at("drift", time_ms, round=number, verdict="identical", **decision))
            later = at(
                "rebalance_churn", time_ms, revision=2, partitions_moved=3,
                unassigned_partition_seconds_min=1.0, unassigned_partition_seconds_max=2.0, **decision,
            )  # fmt: skip
            owed.append((number + chance.randrange(1, 40), {"rebalance_churn": [later]}))
        batch["rounds"].append(at("rounds", time_ms, round=number, elapsed_ms=elapsed, interval_ms=interval_ms))
        for due, rows in [entry for entry in owed if entry[0] <= number]:
            owed.remove((due, rows))
            batch["rebalance_churn"] += rows["rebalance_churn"]
        yield batch


def write(writer: Writer, batch: Batch) -> None:
    for name, rows in batch.items():
        if rows:
            writer.append(name, *rows)


def newest(batch: Batch) -> int:
    """Time of the newest round, ms."""
    column = [column.name for column in table_named("rounds").columns].index("round_time")
    return int(max(row[column] for row in batch["rounds"]))


def in_one(batches: list[Batch]) -> Batch:
    """All rows of some batches as one."""
    return {name: [row for batch in batches for row in batch[name]] for name in batches[0]}


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
