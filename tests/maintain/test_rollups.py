"""History is filled as hours close, once, outlives its rows, and comes back where its tables were deleted."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

import duckdb
import pytest

from streaming.history import DEFINITION
from streaming.maintain import Done, Maintainer, MaintenanceError
from streaming.maintain import rollups as module
from streaming.tables import HISTORY_TABLES, TABLES, DeltaLake, LakeReader, OpenedTable, table_named
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake
from tests.examples import examples
from tests.maintain.build import (
    HOUR_MS,
    INTERVAL_MS,
    TODAY,
    Writer,
    at,
    in_one,
    life,
    newest,
    rows_by_sql,
    rows_of,
    write,
)

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
    # As what DuckDB raises: the other tables are maintained all the same.
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


def twice_a_day(lake: DeltaLake, cluster: str, days: Iterable[int]) -> None:
    """Rows of two rounds of each of these days (days before today as negative numbers), an hour apart."""
    hours = [24 * (TODAY + day) + hour for day in days for hour in (1, 2)]
    for name in ("group_health", "rounds"):
        common = {"cluster": cluster, "lag_total": 5, "interval_ms": 10_000}
        rows = [at(name, number * HOUR_MS, round=number, **common) for number in hours]
        lake.append(name, rows, f"query of {cluster}", hours[0])


def of_day(day: date) -> int:
    """A day as days after today, negative for those before."""
    return (day - date(1970, 1, 1)).days - TODAY


def late_today() -> int:
    return TODAY * DAY_MS + 20 * HOUR_MS


def hours_of(lake: DeltaLake) -> dict[tuple[str, int], int]:
    """Source rows of `group_hourly` by cluster and day before today."""
    sql = "SELECT cluster, event_date AS day, sum(source_rows)::INT AS n FROM group_hourly GROUP BY ALL"
    return {(r["cluster"], of_day(r["day"])): r["n"] for r in LakeReader(lake.root).rows(sql)}


FIVE_DAYS = dict.fromkeys(("group_health", "lag", "rebalance_churn", "drift"), 5)


@pytest.mark.nightly
def test_a_longer_retention_than_before_leaves_the_history_of_days_that_were_deleted(lake: DeltaLake) -> None:
    now = late_today()
    twice_a_day(lake, "c", range(-9, 1))
    # A decision has a longer life.
    for name in ("group_health", "rebalance_churn"):
        old = at(name, (TODAY - 9) * DAY_MS + HOUR_MS, group_id="a", round=24 * (TODAY - 9) + 1, decision=1, revision=1)
        lake.append(name, [old], f"another query of {name}", 1)
    keep = {**FIVE_DAYS, "rebalance_churn": 400}
    for _ in range(2):
        list(Maintainer(lake.root, keep, now=lambda: now).work())
    written = hours_of(lake)
    assert written[("c", -9)] == 4
    assert LakeReader(lake.root).rows("SELECT count(*) AS n FROM group_health WHERE group_id = 'a'") == [{"n": 0}]
    list(Maintainer(lake.root, {}, now=lambda: now).work())
    assert hours_of(lake) == written


@pytest.mark.nightly
def test_retention_waits_for_the_history_of_each_cluster(lake: DeltaLake) -> None:
    keep = {"group_health": 2, "lag": 2}
    for day in (-3, -2, -1):
        twice_a_day(lake, "a", [day])
        maintain(lake, late_today() + day * DAY_MS, keep)
    # The job of b was down for a weekend, and catches up.
    twice_a_day(lake, "b", (-3, -2, -1, 0))
    twice_a_day(lake, "a", [0])
    maintain(lake, late_today(), keep)
    found = hours_of(lake)
    assert {day: rows for (cluster, day), rows in found.items() if cluster == "b" and day < 0} == {-3: 2, -2: 2, -1: 2}
    (first,) = LakeReader(lake.root).rows("SELECT min(event_date) AS day FROM group_health")
    assert of_day(first["day"]) == -2, "and then goes on"


@pytest.mark.nightly
def test_a_row_that_belongs_to_no_hour_does_not_hold_retention_up(lake: DeltaLake) -> None:
    now = late_today()
    twice_a_day(lake, "c", range(-9, 1))
    nowhen = at("rebalance_churn", (TODAY - 9) * DAY_MS, group_id="g", decision=1, revision=1)
    names = [column.name for column in table_named("rebalance_churn").columns]
    nowhen[names.index("record_time")] = None
    lake.append("rebalance_churn", [nowhen], "another query", 1)
    done = list(Maintainer(lake.root, FIVE_DAYS, now=lambda: now).work())
    deleted = [of_day(one.day) for one in done if one.table == "group_health" and one.day and one.what == "retention"]
    assert deleted == [-5], "all days before this one"


@pytest.mark.nightly
def test_what_an_hour_begins_with_does_not_depend_on_other_clusters(tmp_path: Any) -> None:
    found = []
    for clusters in ("b", "ab"):
        lake = empty_lake(tmp_path / clusters)
        # b works until an evening, is down for two days, and goes on with a value that it had before.
        before, after = (TODAY - 4) * DAY_MS + 22 * HOUR_MS, (TODAY - 1) * DAY_MS + 10 * HOUR_MS
        of_b: dict[str, Any] = {"cluster": "b", "interval_ms": 10_000}
        times = [*(before + 10_000 * n for n in range(6)), *(after + 10_000 * n for n in range(6)), TODAY * DAY_MS]
        lake.append("rounds", [at("rounds", ms, round=n, elapsed_ms=0, **of_b) for n, ms in enumerate(times)], "b", 1)
        lake.append("group_health", [at("group_health", before, round=0, lag_total=500, **of_b)], "b", 1)
        lake.append("group_health", [at("group_health", times[11], round=11, lag_total=700, **of_b)], "b", 2)
        if "a" in clusters:
            twice_a_day(lake, "a", range(-4, 1))
        maintain(lake, late_today())
        found.append(rows_by_sql(LakeReader(lake.root), "SELECT * FROM group_hourly WHERE cluster = 'b'"))
    assert found[0] == found[1]
