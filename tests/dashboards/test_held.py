"""For how long states held, and since when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards.boards.states import HeldValue, held_in, rolled_up, times_of
from dashboards.charts import Heard
from dashboards.spans import Range

NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
SPAN = Range("live", NOON, NOON + timedelta(hours=1))
REACH = timedelta(minutes=12)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def row(minutes: float, state: str, *, last: float | None = None, **values: Any) -> dict[str, Any]:
    """A row of states.sql; `last` is the minute of the last row before the next change."""
    given = {"verdict": "identical", "lag_status": "ok", "findings": [], "ended": False} | values
    return {"round_time": at(minutes), "last_time": at(minutes if last is None else last), "state": state, **given}


def states(*rows: dict[str, Any], until: float = 60) -> list[HeldValue]:
    return held_in(rows, SPAN, Heard(at(until), REACH))["state"]


def test_a_state_holds_from_its_first_row_to_the_next_change() -> None:
    assert states(row(-5, "Stable", last=29), row(30, "PreparingRebalance", last=31), row(32, "Stable", last=59)) == [
        HeldValue("Stable", at(0), at(30), whole=False),
        HeldValue("PreparingRebalance", at(30), at(32), whole=True),
        HeldValue("Stable", at(32), at(60), whole=True),
    ]


def test_a_change_of_another_column_does_not_end_a_state() -> None:
    rows = (row(1, "Stable", last=9), row(10, "Stable", verdict="drifted", last=59))
    assert states(*rows) == [HeldValue("Stable", at(1), at(60), whole=False)]
    assert held_in(rows, SPAN, Heard(at(60), REACH))["verdict"] == [
        HeldValue("identical", at(1), at(10), whole=False),
        HeldValue("drifted", at(10), at(60), whole=True),
    ]


def test_nothing_holds_while_no_row_comes_for_longer_than_a_heartbeat() -> None:
    assert states(row(0, "Stable", last=10), row(50, "Stable", last=59)) == [
        HeldValue("Stable", at(0), at(22), whole=False),
        HeldValue("Stable", at(50), at(60), whole=True),
    ]


def test_nothing_holds_after_the_newest_round_nor_of_a_group_that_has_ended() -> None:
    assert states(row(0, "Stable", last=30), until=33) == [HeldValue("Stable", at(0), at(33), whole=False)]
    assert states(row(0, "Stable", last=29), row(30, "Deleted", ended=True)) == [
        HeldValue("Stable", at(0), at(30), whole=False)
    ]


def test_each_finding_is_a_measure_of_its_own() -> None:
    found = [{"finding": "unassigned", "since": at(5), "detail": "t 1"}]
    rows = (row(0, "Stable", last=4), row(5, "Stable", findings=found, last=9), row(10, "Stable", last=59))
    held = held_in(rows, SPAN, Heard(at(60), REACH))
    assert held["finding unassigned"] == [HeldValue("holds", at(5), at(10), whole=True)]


def test_times_are_summed_by_value_the_longest_first() -> None:
    rows = (row(0, "Stable", last=9), row(10, "Empty", last=49), row(50, "Stable", last=59))
    assert times_of({"state": states(*rows)})["state"] == {
        "Empty": timedelta(minutes=40),
        "Stable": timedelta(minutes=20),
    }


def test_roll_ups_tell_for_how_long_each_value_held() -> None:
    def rolled(stable: float, rebalancing: float, unassigned: float) -> dict[str, Any]:
        return {
            "state_seconds": [
                {"name": "PreparingRebalance", "seconds": rebalancing},
                {"name": "Stable", "seconds": stable},
            ],
            "verdict_seconds": [],
            "lag_status_seconds": None,
            "finding_seconds": [{"name": "unassigned", "seconds": unassigned}],
        }

    assert rolled_up([rolled(3_500, 100, 40), rolled(3_600, 0, 20)]) == {
        "state": {"Stable": timedelta(seconds=7_100), "PreparingRebalance": timedelta(seconds=100)},
        "finding unassigned": {"holds": timedelta(seconds=60)},
    }
