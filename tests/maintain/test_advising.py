"""Advice is written once a day of a cluster has its history: the same rows however it came about."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from streaming.maintain import Done, Maintainer
from streaming.maintain import advising as module
from streaming.tables import ADVICE_TABLES, DeltaLake, LakeReader, OpenedTable
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake
from tests.maintain.build import HOUR_MS, TODAY, Writer, at, rows_of

pytestmark = pytest.mark.turn(6)

DAYS = 4
"""Whole days of the lake before today."""

MINUTE_MS = 60_000
ALL = sorted(table.name for table in ADVICE_TABLES)


def start_of(days_ago: int) -> int:
    return (TODAY - days_ago) * DAY_MS


def day_of(days_ago: int) -> date:
    return date(1970, 1, 1) + timedelta(days=TODAY - days_ago)


def observed(writer: Writer, first: int = DAYS, last: int = 0) -> None:
    """Two rounds a day, with a row of health for each of the groups a and b, and one that closes the last day."""
    health, rounds = [], []
    times = [start_of(ago) + 12 * HOUR_MS + number * MINUTE_MS for ago in range(first, last, -1) for number in (0, 30)]
    for time_ms in [*times, start_of(last) + HOUR_MS]:
        number = time_ms // MINUTE_MS
        for group in "ab":
            row = at(
                "group_health", time_ms, group_id=group, round=number, state="Stable", members=2, commits=1,
                group_type="classic", protocol_type="consumer", strategy="range", partitions=6,
            )  # fmt: skip
            health.append(row)
        rounds.append(at("rounds", time_ms, round=number, elapsed_ms=0, interval_ms=10_000))
    writer.append("group_health", *health)
    writer.append("rounds", *rounds)


def stopped(days_ago: int, number: int, group: str = "a", **changes: Any) -> list[Any]:
    """An eager rebalance that stopped three partitions and moved one, for two partition-seconds at least."""
    fields: dict[str, Any] = {
        "group_id": group, "decision": number, "revision": 1, "kind": "rebalance", "strategy": "range",
        "rebalance_protocol": "eager", "partitions_stopped_unmoved": 3, "partitions_moved": 1, "replaced": [],
        "unassigned_partition_seconds_min": 2.0, "causes": [("rejoined", "", 1, [], None, None, None)], "joined": [],
        "left": [],
    }  # fmt: skip
    return at("rebalance_churn", start_of(days_ago) + 12 * HOUR_MS + number * MINUTE_MS, **(fields | changes))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four days; group a has three costly rebalances on the third one back."""
    made = empty_lake(tmp_path_factory.mktemp("written") / "lake")
    writer = Writer(made)
    observed(writer)
    writer.append("rebalance_churn", *(stopped(3, number) for number in range(3)))
    return Path(made.root)


@pytest.fixture(scope="module")
def looked_after(written: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Done]]:
    """The same lake with its history and its advice, and what was done for it."""
    lake = copied(written, tmp_path_factory.mktemp("looked-after"))
    return Path(lake.root), maintain(lake)


def copied(lake: Path, folder: Path) -> DeltaLake:
    return DeltaLake(str(shutil.copytree(lake, folder / "lake")))


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> DeltaLake:
    """The lake as its job has written it."""
    return copied(written, tmp_path)


@pytest.fixture
def advised(looked_after: tuple[Path, list[Done]], tmp_path: Path) -> DeltaLake:
    """The lake after its first maintenance."""
    return copied(looked_after[0], tmp_path)


def maintain(lake: DeltaLake, days_later: int = 0) -> list[Done]:
    return list(Maintainer(lake.root, None, now=lambda: start_of(-days_later) + 2 * HOUR_MS).work())


def told(lake: DeltaLake) -> list[tuple[Any, ...]]:
    sql = (
        "SELECT group_id, kind, event_date, ended, since, events, saved FROM advice ORDER BY event_date, group_id, kind"
    )
    return [tuple(row.values()) for row in LakeReader(lake.root).rows(sql)]


def expected(first_ago: int, last_ago: int, events: int = 3) -> list[tuple[Any, ...]]:
    first = day_of(first_ago)
    return [
        ("a", "cooperative", day_of(ago), False, first, events, events * 1.5)
        for ago in range(first_ago, last_ago - 1, -1)
    ]


def test_advice_holds_from_the_day_that_has_its_events(
    advised: DeltaLake, looked_after: tuple[Path, list[Done]]
) -> None:
    done = [one for one in looked_after[1] if one.what == "advice"]
    assert [one.day for one in done] == [day_of(ago) for ago in (4, 3, 2, 1)]
    assert told(advised) == expected(3, 1)
    reader = LakeReader(advised.root)
    sql = "SELECT event_date, first_day, period_days, groups, advices FROM advice_days ORDER BY event_date"
    assert [tuple(row.values()) for row in reader.rows(sql)] == [
        (day_of(ago), day_of(4), 5 - ago, 2, int(ago <= 3)) for ago in (4, 3, 2, 1)
    ]
    assert [one for one in maintain(advised) if one.what == "advice"] == [], "once"
    (row,) = reader.rows("SELECT * FROM advice_current")
    assert row["evidence"].startswith("3 eager rebalances stopped 9 partitions")


@pytest.mark.nightly
def test_advice_ends_when_its_events_have_left_the_period(advised: DeltaLake) -> None:
    writer = Writer(advised)
    writer.batch = 10_000
    observed(writer, 0, -8)
    maintain(advised, 8)
    rows = [row for row in told(advised) if row[0] == "a"]
    assert [(row[2], row[3]) for row in rows[-2:]] == [(day_of(-3), False), (day_of(-4), True)]
    assert LakeReader(advised.root).count("advice_current") == 0


@pytest.mark.nightly
def test_a_kill_between_the_two_tables_leaves_the_day_due_and_doubles_nothing(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = module.put

    def killed(opened: OpenedTable, *rest: Any) -> int:
        if opened.table.name == "advice_days":
            raise KeyboardInterrupt
        return put(opened, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(module, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            maintain(lake)
    assert LakeReader(lake.root).count("advice_days") == 0
    maintain(lake)
    assert told(lake) == expected(3, 1)
    found = {name: rows_of(lake, name) for name in ALL}
    for name in ALL:
        shutil.rmtree(lake.path(name))
    maintain(lake)
    assert {name: rows_of(lake, name) for name in ALL} == found, "rebuilt"


@pytest.mark.nightly
def test_raw_rows_that_are_kept_for_less_than_a_period_give_no_advice(lake: DeltaLake) -> None:
    keep = {"members": 7}
    done = list(Maintainer(lake.root, keep, now=lambda: start_of(0) + 2 * HOUR_MS).work())
    assert [one for one in done if one.what == "advice"] == []


@pytest.mark.nightly
def test_a_day_that_is_looked_at_in_parts_is_written_once_with_all_of_them(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PART_ROWS", 5)
    assert [one.what for one in maintain(lake)].count("advice") == 4
    assert told(lake) == expected(3, 1)


@pytest.mark.nightly
def test_advice_from_before_a_long_pause_ends_with_the_first_day_after_it(advised: DeltaLake) -> None:
    writer = Writer(advised)
    writer.batch = 10_000
    observed(writer, -60, -62)
    maintain(advised, 62)
    assert [row[:5] for row in told(advised) if row[3]] == [("a", "cooperative", day_of(-60), True, day_of(3))]
    assert LakeReader(advised.root).count("advice_current") == 0
    assert [one for one in maintain(advised, 62) if one.what == "advice"] == [], "once"
