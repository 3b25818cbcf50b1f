"""History is filled as hours close: the same rows however it came about, once, and from whatever is kept."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from streaming.history import DEFINITION
from streaming.maintain import Done, Maintainer, MaintenanceError
from streaming.maintain import rollups as module
from streaming.tables import HISTORY_TABLES, TABLES, DeltaLake, LakeReader, OpenedTable
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake
from tests.examples import examples
from tests.maintain.build import HOUR_MS, INTERVAL_MS, TODAY, Writer, at, in_one, life, newest, rows_of, write

pytestmark = pytest.mark.turn(6)

YESTERDAY = (TODAY - 1) * DAY_MS
NAMES = tuple(table.name for table in HISTORY_TABLES)


@pytest.fixture
def lake(tmp_path: Any) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


def maintain(lake: DeltaLake, now: int, keep: dict[str, int] | None = None) -> list[Done]:
    return list(Maintainer(lake.root, keep, now=lambda: now).work())


def history(lake: DeltaLake) -> dict[str, Counter[str]]:
    return {name: rows_of(lake, name) for name in NAMES}


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(examples(3)))
def test_hours_filled_as_they_close_are_those_of_a_lake_that_is_looked_at_once(
    lake: DeltaLake, seed: int, tmp_path: Any
) -> None:
    chance = random.Random(seed)
    batches = list(life(chance, YESTERDAY + 21 * HOUR_MS, 6, 2 * INTERVAL_MS))
    writer = Writer(lake)
    for first in range(0, len(batches), 3):
        batch = in_one(batches[first : first + 3])
        write(writer, batch)
        if chance.random() < 0.3:
            maintain(lake, newest(batch))
    now = newest(batches[-1])
    maintain(lake, now)
    other = empty_lake(tmp_path / "other")
    write(Writer(other), in_one(batches))
    maintain(other, now)
    assert history(lake) == history(other)
    assert {name: len(rows) > 0 for name, rows in history(lake).items()} == dict.fromkeys(NAMES, True)
    reader = LakeReader(lake.root)
    for table in HISTORY_TABLES:
        keys = ", ".join(table.key)
        assert reader.rows(f"SELECT {keys} FROM {table.name} GROUP BY ALL HAVING count(*) > 1") == []
    # Six hours, the last of which is not closed yet; three of them are of a day that is.
    assert (reader.count("group_hourly"), reader.count("group_daily")) == (2 * 5, 2)
    assert [done for done in maintain(lake, now) if done.what == "history"] == []


def some_hours(lake: DeltaLake, hours: int = 4) -> int:
    write(Writer(lake), in_one(list(life(random.Random(1), YESTERDAY, hours))))
    return YESTERDAY + hours * HOUR_MS - 1


@pytest.mark.nightly
def test_history_waits_until_the_files_that_it_reads_are_joined(lake: DeltaLake) -> None:
    writer = Writer(lake)
    for batch in life(random.Random(2), YESTERDAY, 2):
        write(writer, batch)
    done = list(Maintainer(lake.root, None, now=lambda: YESTERDAY + 2 * HOUR_MS).work())
    of_tables = [at for at, piece in enumerate(done) if piece.what == "compaction" and piece.table not in NAMES]
    assert len(of_tables) > 3
    assert max(of_tables) < min(at for at, piece in enumerate(done) if piece.what == "history")


def test_an_hour_that_gets_a_late_row_is_computed_again_and_the_one_after_it(lake: DeltaLake) -> None:
    now = some_hours(lake)
    maintain(lake, now)
    writer = Writer(lake)
    writer.batch = 1_000
    # The broker's clock had gone back: a round with the highest number lies in the first hour, and its value holds on.
    late = YESTERDAY + HOUR_MS - 1
    writer.append("group_health", at("group_health", late, group_id="a", round=11, lag_total=999))
    done = [(d.hour.hour, d.table) for d in maintain(lake, now) if d.what == "history" and d.hour]
    assert done == [(1, "group_hourly"), (0, "group_hourly")]
    reader = LakeReader(lake.root)
    sql = "SELECT lag_total_max AS most FROM group_hourly WHERE group_id = 'a' ORDER BY hour LIMIT 1"
    assert reader.rows(sql) == [{"most": 999}]


@pytest.mark.nightly
def test_a_failure_between_the_two_tables_leaves_the_hour_due(lake: DeltaLake, monkeypatch: pytest.MonkeyPatch) -> None:
    now = some_hours(lake)
    put = module.put

    def killed(opened: OpenedTable, *rest: Any) -> int:
        if opened.table.name == "group_hourly":
            raise KeyboardInterrupt
        return put(opened, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(module, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            maintain(lake, now)
    assert LakeReader(lake.root).count("partition_hourly") > 0
    assert LakeReader(lake.root).count("group_hourly") == 0
    maintain(lake, now)
    found = history(lake)
    for table in HISTORY_TABLES:
        shutil.rmtree(lake.path(table.name))
    # A lost history fills itself again.
    maintain(lake, now)
    assert history(lake) == found


@pytest.mark.nightly
def test_two_clusters_close_their_hours_apart(lake: DeltaLake) -> None:
    now = some_hours(lake, 3)
    writer = Writer(lake)
    writer.batch = 1_000
    for number in range(6):
        time_ms = YESTERDAY + number * INTERVAL_MS
        common = {"cluster": "d", "round": number}
        writer.append("group_health", at("group_health", time_ms, group_id="x", lag_total=1, **common))
        writer.append(
            "rounds", at("rounds", time_ms, elapsed_ms=number * INTERVAL_MS, interval_ms=INTERVAL_MS, **common)
        )
    maintain(lake, now)
    reader = LakeReader(lake.root)
    clusters = "SELECT DISTINCT cluster FROM group_hourly ORDER BY 1"
    assert reader.rows(clusters) == [{"cluster": "c"}]
    # A cluster that stays silent for a day has closed its hours, too.
    maintain(lake, now + DAY_MS)
    reader.refresh()
    assert reader.rows(clusters) == [{"cluster": "c"}, {"cluster": "d"}]
    (found,) = reader.rows("SELECT observed_seconds AS s, lag_total_mean AS m FROM group_hourly WHERE cluster = 'd'")
    assert (found["s"], found["m"]) == (1_500, 1)


@pytest.mark.nightly
def test_what_lag_no_longer_has_stays_in_the_history(lake: DeltaLake) -> None:
    some_hours(lake)
    writer = Writer(lake)
    writer.batch = 1_000
    today = YESTERDAY + 3 * DAY_MS
    writer.append("rounds", at("rounds", today, round=10_000))
    assert ("lag", "retention") in {(done.table, done.what) for done in maintain(lake, today, {"lag": 2})}
    before = rows_of(lake, "partition_hourly")
    # A revision that comes after the rows of `lag` are gone.
    late = at(
        "rebalance_churn", YESTERDAY + 1, group_id="a", decision=1, revision=9, kind="rebalance", partitions_moved=7
    )
    writer.append("rebalance_churn", late)
    done = maintain(lake, today, {"lag": 2})
    assert ("group_hourly", "history") in {(d.table, d.what) for d in done}
    assert rows_of(lake, "partition_hourly") == before


class Ageing:
    """A lake to which only rounds are written, maintained with five days of retention."""

    def __init__(self, lake: DeltaLake) -> None:
        self.lake = lake
        self._writer = Writer(lake)
        self._writer.batch = 1_000

    def days_later(self, days: int) -> list[str]:
        """What is done to `lag` and to history after so many days."""
        now = YESTERDAY + days * DAY_MS
        self._writer.append("rounds", at("rounds", now, round=10_000 + days))
        keep = {table.name: 5 for table in TABLES}
        return [done.what for done in maintain(self.lake, now, keep) if done.table in {"lag", "group_hourly"}]


@pytest.mark.nightly
def test_retention_waits_for_a_history_that_fails_but_not_for_ever(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_hours(lake)
    ageing = Ageing(lake)
    # (As what DuckDB raises: the other tables are maintained all the same.)
    monkeypatch.setattr(module, "group_hours", raising(duckdb.Error("no memory left")))
    before = LakeReader(lake.root).count("lag")
    for days in (20, 35):
        with pytest.raises(MaintenanceError, match="no memory left"):
            ageing.days_later(days)
        assert LakeReader(lake.root).count("lag") == before
    with pytest.raises(MaintenanceError, match="no memory left"):
        ageing.days_later(36)
    assert LakeReader(lake.root).count("lag") == 0


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.nightly
def test_after_an_upgrade_of_the_definitions_everything_that_is_kept_is_computed_again(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = some_hours(lake) + 2 * DAY_MS
    maintain(lake, now)
    for name in ("streaming.history.due", "streaming.history.due", "streaming.maintain.rollups"):
        monkeypatch.setattr(f"{name}.DEFINITION", DEFINITION + 1)
    done = [done for done in maintain(lake, now) if done.what == "history"]
    assert [one.table for one in done] == ["group_hourly"] * 4 + ["group_daily"]
    reader = LakeReader(lake.root)
    for table in HISTORY_TABLES:
        assert reader.rows(f"SELECT DISTINCT definition AS version FROM {table.name}") == [{"version": DEFINITION + 1}]
    assert [done for done in maintain(lake, now) if done.what == "history"] == []


@pytest.mark.nightly
def test_rows_without_their_rounds_are_not_tried_for_ever(lake: DeltaLake) -> None:
    now = some_hours(lake)
    shutil.rmtree(lake.path("rounds"))
    lake = DeltaLake(lake.root)
    lake.create(TABLES)
    Writer(lake).append("rounds", at("rounds", now, round=10_000, elapsed_ms=0, interval_ms=INTERVAL_MS))
    maintainer = Maintainer(lake.root, None, now=lambda: now)
    list(maintainer.work())
    assert LakeReader(lake.root).count("group_hourly") > 0
    assert [done for done in maintainer.work() if done.what == "history"] == []
