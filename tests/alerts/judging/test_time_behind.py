"""Rules about how long a group has been behind: judged at each round, over rows that do not change."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.alerts import Alerter
from streaming.alerts.judging.feed import AT, AT_LEAST, AT_MOST, COLUMNS, Standing
from streaming.alerts.judging.firing import FeedRound
from streaming.alerts.rules.rules import Rule
from streaming.config import Settings
from streaming.tables import table_named
from tests.alerts.build import INTERVAL, START, Writer, rules, time_of

LATE = """\
  - name: late
    view: group_health_current
    when: time_behind_seconds > 60 AND members > 0
    value: time_behind_seconds
    severity: critical
    message: "{group_id} is at least {time_behind_seconds} s behind on {time_behind_topic}"
"""

HELD_LATE = """\
  - name: held_late
    view: group_health_current
    when: time_behind_seconds > 60
    for: 2 rounds
    severity: warning
    message: "{group_id}"
"""


def behind(group: str, at_least: float | None, at_most: float | None, **more: Any) -> dict[str, Any]:
    reason = "before_rounds" if at_least is not None and at_most is None else None
    return {
        "group_id": group,
        "time_behind_seconds_min": at_least,
        "time_behind_seconds_max": at_most,
        "time_behind_topic": "orders" if at_least else None,
        "time_behind_reason": reason,
        **more,
    }


# At the opening of round n, 10 s after the one before, g is 10 n + 5 to 10 n + 15 s behind, until it has caught up.
STORY: list[dict[str, list[dict[str, Any]]]] = [{} for _ in range(12)]
STORY[0] = {"group_health": [behind("g", 5.0, 15.0), behind("open", 5.0, None), behind("fine", 0.0, 0.0)]}
STORY[1] = {"group_health": [behind("ends", 50.0, 60.0), behind("unknown", 50.0, 60.0)]}
STORY[4] = {"group_health": [behind("unknown", None, None)]}
STORY[7] = {"group_health": [behind("ends", 50.0, 60.0, ended=True)]}
STORY[9] = {"group_health": [behind("g", 0.0, 0.0), behind("open", 1.0, 8.0), behind("unknown", 0.0, 0.0)]}

EXPECTED = [
    ("late", "ends", 3, "firing", 70.0),
    ("late", "unknown", 3, "firing", 70.0),
    ("held_late", "ends", 3, "pending", None),
    ("held_late", "unknown", 3, "pending", None),
    ("held_late", "ends", 5, "firing", None),
    ("late", "g", 6, "firing", 65.0),
    ("late", "open", 6, "firing", 65.0),
    ("held_late", "g", 6, "pending", None),
    ("held_late", "open", 6, "pending", None),
    ("late", "ends", 7, "gone", None),
    ("held_late", "ends", 7, "gone", None),
    ("held_late", "g", 8, "firing", None),
    ("held_late", "open", 8, "firing", None),
    ("late", "g", 9, "resolved", 0.0),
    ("late", "open", 9, "resolved", 1.0),
    ("late", "unknown", 9, "resolved", 0.0),
    ("held_late", "g", 9, "resolved", None),
    ("held_late", "open", 9, "resolved", None),
    ("held_late", "unknown", 9, "resolved", None),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rule, ...]:
    return rules(tmp_path_factory.mktemp("rules"), LATE, HELD_LATE)


@pytest.mark.parametrize(
    ("cuts", "restart"),
    [
        pytest.param(range(12), False, id="each round"),
        pytest.param(range(12), True, id="a new alerter for each round", marks=pytest.mark.nightly),
        pytest.param((11,), False, id="all at once"),
        pytest.param((4, 8, 11), True, id="restarts now and then", marks=pytest.mark.nightly),
    ],
)
def test_a_group_fires_at_the_round_at_which_its_row_has_become_old_enough(
    made: tuple[Rule, ...], tmp_path: Path, cuts: Any, restart: bool
) -> None:
    writer, now = Writer(tmp_path), [START / 1000]

    def alerter() -> Alerter:
        return Alerter(Settings(cluster="c", lake=writer.root), made, {}, lambda: now[0], lambda: now[0])

    alert, first = alerter(), 0
    for last in cuts:
        writer.write(first, *STORY[first : last + 1])
        first, now[0] = last + 1, time_of(last) / 1000 + 1
        alert = alerter() if restart else alert
        alert.poll()
        alert.poll()
    found = {(r["rule"], r["group_id"], r["round"], r["state"], r["value"]) for r in writer.transitions()}
    assert found == set(EXPECTED)
    assert {r["message"] for r in writer.transitions() if r["rule"] == "late" and r["group_id"] == "g"} == {
        "g is at least 65 s behind on orders"
    }


SCHEMA = pa.schema(
    [
        field
        for field in table_named("group_health").arrow_schema
        if field.name in {"group_id", "round", "round_time", "ended", *COLUMNS}
    ]
)


def rows(number: int, *found: dict[str, Any], time: int | None = None) -> pa.Table:
    at = time_of(number) if time is None else time
    given = [{"ended": False, **row, "round": number, "round_time": at * 1000} for row in found]
    return pa.Table.from_pylist(given, schema=SCHEMA)


def a_round(number: int, time: int | None = None, elapsed: int | None = None) -> FeedRound:
    at = time_of(number) if time is None else time
    return FeedRound(number, at, INTERVAL, number * INTERVAL if elapsed is None else elapsed)


def judged(found: pa.Table) -> list[tuple[int, float | None, float | None]]:
    return [(row[AT], row[AT_LEAST], row[AT_MOST]) for row in found.sort_by(AT).to_pylist()]


def standing(elapsed: dict[int, int] | None = None) -> Standing:
    made = Standing(SCHEMA)
    made.begin(elapsed or {})
    return made


def test_a_group_that_is_behind_gets_older_with_each_round() -> None:
    held = standing()
    assert judged(held.at([a_round(0), a_round(1)], rows(0, behind("g", 5.0, 15.0)))) == [
        (0, 5.0, 15.0),
        (1, 15.0, 25.0),
    ]
    assert judged(held.at([a_round(2)], rows(0))) == [(2, 25.0, 35.0)]
    assert judged(held.at([a_round(3)], rows(3, behind("g", 1.0, 2.0)))) == [(3, 1.0, 2.0)]


@pytest.mark.parametrize("last", [behind("g", 0.0, 0.0), behind("g", None, None), behind("g", 5.0, 9.0, ended=True)])
def test_a_group_that_has_caught_up_or_ended_or_is_not_known_is_judged_once(last: dict[str, Any]) -> None:
    held = standing()
    held.at([a_round(0)], rows(0, behind("g", 5.0, 15.0)))
    assert len(judged(held.at([a_round(1), a_round(2)], rows(1, last)))) == 1
    assert judged(held.at([a_round(3)], rows(0))) == []


def test_rows_of_a_round_that_was_passed_over_are_judged_at_the_next_one() -> None:
    held = standing()
    assert judged(held.at([a_round(4)], rows(2, behind("g", 0.0, 0.0)))) == [(4, 0.0, 0.0)]
    assert judged(held.at([a_round(6)], rows(5, behind("g", 5.0, 15.0)))) == [(6, 5.0, 25.0)]


def test_time_without_rounds_counts_for_the_upper_bound_alone() -> None:
    held = standing()
    held.at([a_round(0)], rows(0, behind("g", 5.0, 15.0)))
    hour = START + 3_600_000
    assert judged(held.at([a_round(1, hour, 3 * INTERVAL)], rows(0))) == [(1, 35.0, 3_615.0)]


def test_a_clock_that_is_wrong_for_one_round_makes_nobody_late_and_nobody_early() -> None:
    held = standing()
    held.at([a_round(0)], rows(0, behind("g", 5.0, 15.0)))
    day = 86_400_000
    ahead = judged(held.at([a_round(1, time_of(1) + day, 3 * INTERVAL)], rows(0)))
    assert ahead == [(1, 35.0, 15.0 + 10 + 86_400)]
    back = judged(held.at([a_round(2, time_of(2) - day, 3 * INTERVAL)], rows(0)))
    assert back == [(2, 5.0, math.inf)]


def test_a_start_in_the_middle_ages_a_row_from_its_own_round_on() -> None:
    known = {number: number * INTERVAL for number in range(7)}
    assert judged(standing(known).at([a_round(7)], rows(2, behind("g", 5.0, 15.0)))) == [(7, 55.0, 65.0)]
    # With tables that no longer have that round nobody knows how much time rounds have seen since.
    assert judged(standing().at([a_round(7)], rows(2, behind("g", 5.0, 15.0)))) == [(7, 5.0, 65.0)]


def test_a_row_of_a_round_that_nobody_saw_ages_the_same_however_the_rounds_come() -> None:
    rounds = [a_round(number) for number in (6, 7, 8, 9, 60)]
    old = rows(5, behind("g", 5.0, 15.0))
    at_once = judged(standing().at(rounds, old))
    held = standing()
    assert [one for r in rounds for one in judged(held.at([r], old if r.number == 6 else rows(0)))] == at_once
    assert [at_least for _, at_least, _ in at_once] == [5.0, 15.0, 25.0, 35.0, 545.0]
