"""Rows that live with their group leave the memory when it is gone, and not before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from streaming.tables import DeltaLake, LakeReader, TableCache, Wanted, table_named
from tests.empty_lake import empty_lake
from tests.tables.cached import CURRENT, HEALTH, HOUR, cache, health, read_all


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return empty_lake(tmp_path / "lake")


def judged(table: str, group: str, round_: int, *, hour: float = 0.0, strategy: str | None = None) -> list[Any]:
    """A row of `drift` or `what_if`."""
    ms = int(hour * HOUR) + round_
    values = {
        "cluster": "c", "group_id": group, "decision": round_, "round": round_, "round_time": ms,
        "record_time": ms, "event_date": ms // 86_400_000, "verdict": f"v{round_}", "strategy": strategy,
    }  # fmt: skip
    return [values.get(column.name) for column in table_named(table).columns]


def rounds_of(numbers: Iterable[int], *, hour: float, step_ms: int = 10_000, elapsed_ms: int = 0) -> list[list[Any]]:
    """Rounds ten seconds apart, from an hour on."""
    rows = []
    for at, number in enumerate(numbers):
        ms = int(hour * HOUR) + at * step_ms
        values = {
            "cluster": "c", "round": number, "round_time": ms, "event_date": ms // 86_400_000,
            "elapsed_ms": elapsed_ms + at * step_ms,
        }  # fmt: skip
        rows.append([values.get(column.name) for column in table_named("rounds").columns])
    return rows


JUDGED = {
    "group_health": HEALTH,
    "drift": Wanted(current=frozenset({"verdict"})),
    "what_if": Wanted(current=frozenset({"strategy"})),
    "rounds": Wanted(current=frozenset({"round"}), past=frozenset({"round_time", "elapsed_ms"})),
}
VERDICTS = "SELECT group_id, verdict FROM drift_current ORDER BY ALL"
WHAT_IFS = "SELECT group_id, strategy, decision FROM what_if_current ORDER BY ALL"


def held(followed: TableCache, table: str) -> list[str]:
    """Groups of the rows of the present that are in memory, living or not."""
    return [row["group_id"] for row in followed.rows(f"SELECT group_id FROM newest_{table} ORDER BY ALL")]


def test_the_verdict_and_what_ifs_of_a_group_that_has_ended_are_let_go(lake: DeltaLake) -> None:
    followed = cache(lake, **JUDGED)
    for number, (group, ended) in enumerate((("lives", False), ("a-run", True), ("another-run", True)), 1):
        lake.append("drift", [judged("drift", group, number)], "query", number)
        strategies = ("range", "sticky")
        lake.append("what_if", [judged("what_if", group, number, strategy=s) for s in strategies], "query", number)
        lake.append("group_health", [health(group, number)], "query", 2 * number)
        lake.append("group_health", [health(group, number + 10, ended=ended)], "query", 2 * number + 1)
        followed.update()
        read_all(followed)
    followed.tidy()
    assert (held(followed, "drift"), held(followed, "what_if")) == (["lives"], ["lives", "lives"])
    whole = LakeReader(lake.root)
    for sql in (CURRENT, VERDICTS, WHAT_IFS):
        assert followed.rows(sql) == whole.rows(sql)


def test_a_verdict_that_is_read_before_its_groups_row_stays(lake: DeltaLake) -> None:
    followed = cache(lake, **JUDGED)
    lake.append("rounds", rounds_of(range(-400, 0), hour=0), "query", 0)
    lake.append("group_health", [health("other", 1), health("again", 2, ended=True)], "query", 0)
    lake.append("drift", [judged("drift", group, 3) for group in ("new", "again")], "query", 0)
    followed.update()
    read_all(followed)
    followed.tidy()
    lake.append("group_health", [health("new", 3), health("again", 3)], "query", 1)
    followed.update()
    followed.tidy()
    assert followed.rows(VERDICTS) == [{"group_id": "again", "verdict": "v3"}, {"group_id": "new", "verdict": "v3"}]
    assert followed.rows(VERDICTS) == LakeReader(lake.root).rows(VERDICTS)


def test_a_group_that_comes_back_by_its_heartbeat_after_an_outage_has_its_verdict(lake: DeltaLake) -> None:
    # (An outage of five hours: at the start no row of before is read, and none has been repeated yet.)
    before, after = rounds_of(range(10), hour=0), rounds_of(range(10, 20), hour=5, elapsed_ms=100_000)
    lake.append("rounds", [*before, *after], "query", 0)
    lake.append("group_health", [health("quiet", 1)], "query", 0)
    lake.append("drift", [judged("drift", "quiet", 1)], "query", 0)
    lake.append("group_health", [health("busy", 15, hour=5)], "query", 1)
    begun = cache(lake, **JUDGED)
    begun.update()
    read_all(begun)
    begun.tidy()
    assert [row["group_id"] for row in begun.rows(CURRENT)] == ["busy"]
    lake.append("group_health", [health("quiet", 20, hour=5.1)], "query", 2)
    begun.update()
    assert begun.rows(VERDICTS) == [{"group_id": "quiet", "verdict": "v1"}]
