"""History outlives its rows, is whole for each cluster, and comes back where its tables were deleted."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest

from streaming.maintain import Maintainer
from streaming.tables import HISTORY_TABLES, DeltaLake, LakeReader, table_named
from streaming.times import DAY_MS
from tests.empty_lake import empty_lake
from tests.maintain.build import HOUR_MS, TODAY, Writer, at, in_one, life, rows_by_sql, rows_of, write

pytestmark = pytest.mark.turn(6)

NAMES = tuple(table.name for table in HISTORY_TABLES)


@pytest.fixture
def lake(tmp_path: Any) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


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


def maintain(lake: DeltaLake, now: int, keep: dict[str, int] | None = None) -> None:
    list(Maintainer(lake.root, keep, now=lambda: now).work())


def four_hours(lake: DeltaLake) -> int:
    """The first hours of yesterday, of two groups; returns the time of the last round, ms."""
    start = (TODAY - 1) * DAY_MS
    write(Writer(lake), in_one(list(life(random.Random(1), start, 4))))
    return start + 4 * HOUR_MS - 1


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
def test_history_that_is_deleted_beside_a_maintainer_at_work_is_filled_again(lake: DeltaLake) -> None:
    now = four_hours(lake) + 2 * DAY_MS
    told: list[tuple[str, str]] = []
    maintainer = Maintainer(lake.root, None, now=lambda: now, report=lambda *one: told.append(one))
    list(maintainer.work())
    found = {name: rows_of(lake, name) for name in NAMES}
    assert {name: len(rows) > 0 for name, rows in found.items()} == dict.fromkeys(NAMES, True)
    for name in NAMES:
        shutil.rmtree(lake.path(name))
    list(maintainer.work())
    assert {name: rows_of(lake, name) for name in NAMES} == found
    assert told == [], "nothing is to be done (docs/operations.md)"


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
