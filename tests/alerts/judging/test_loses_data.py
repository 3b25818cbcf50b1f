"""The time until a group loses data, in rules: it counts down over rows that do not change, and is never too short."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.alerts.judging.conditions import Conditions
from streaming.alerts.judging.feed import AT, LOSES_AT_LEAST, LOSES_AT_MOST, Chunk, Standing
from streaming.alerts.judging.firing import FeedRound
from streaming.alerts.rules.rules import RulesError, load_rules
from streaming.config import SHIPPED_RULES
from streaming.tables import table_named
from tests.alerts.build import INTERVAL, START, rules, time_of

SCHEMA = table_named("group_health").arrow_schema

_RULES = {rule.name: rule for rule in load_rules(SHIPPED_RULES)}

DAY_S = 86_400.0


def losing(at_least: float | None, at_most: float | None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "cluster": "c",
        "group_id": "g",
        "round": 0,
        "round_time": START * 1000,
        "ended": False,
        "members": 2,
        "time_behind_seconds_min": 5.0,
        "time_behind_seconds_max": 15.0,
        "time_behind_topic": "orders" if reason != "keeps_up" else None,
        "loses_data_in_seconds_min": at_least,
        "loses_data_in_seconds_max": at_most,
        "loses_data_reason": reason,
        "loses_data_topic": "orders" if at_most is not None else None,
        "loses_data_partition": 3 if at_most is not None else None,
        "loses_data_retention_seconds": 7 * DAY_S if at_most is not None else None,
        "loses_data_by": "append_time",
        **more,
    }


def a_round(number: int, time: int | None = None) -> FeedRound:
    return FeedRound(number, time_of(number) if time is None else time, INTERVAL, number * INTERVAL)


def judged(row: dict[str, Any], *rounds: FeedRound) -> list[tuple[int, float | None, float | None]]:
    held = Standing(SCHEMA)
    held.begin({})
    found = held.at(rounds, pa.Table.from_pylist([row], schema=SCHEMA)).sort_by(AT).to_pylist()
    return [(one[AT], one[LOSES_AT_LEAST], one[LOSES_AT_MOST]) for one in found]


def test_both_bounds_count_down_with_the_rounds_and_stop_at_0() -> None:
    found = judged(losing(15.0, 25.0), *(a_round(number) for number in range(4)))
    assert found == [(0, 15.0, 25.0), (1, 5.0, 15.0), (2, 0.0, 5.0), (3, 0.0, 0.0)]


def test_time_without_rounds_counts_against_the_promise_and_not_for_the_alarm() -> None:
    found = judged(losing(4_000.0, 5_000.0), a_round(0), FeedRound(1, START + 3_600_000, INTERVAL, 3 * INTERVAL))
    assert found[1] == (1, 400.0, 4_970.0)


def test_a_clock_that_runs_back_promises_nothing_and_alarms_nobody() -> None:
    found = judged(losing(4_000.0, 5_000.0), a_round(0), FeedRound(1, START - 3_600_000, INTERVAL, INTERVAL))
    assert found[1] == (1, 0.0, 5_000.0)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (losing(None, 25.0, "retention_bytes"), (0.0, 25.0)),
        (losing(15.0, None, "uncertain_time"), (15.0, math.inf)),
        (losing(None, None, "retention_unknown"), (None, None)),
        (losing(None, None, "lag_unknown"), (None, None)),
        (losing(None, None, "keeps_up"), (math.inf, math.inf)),
        (losing(None, None, "no_retention"), (math.inf, math.inf)),
    ],
)
def test_an_open_bound_is_the_worst_and_a_group_in_no_danger_loses_nothing_ever(
    row: dict[str, Any], expected: tuple[float | None, float | None]
) -> None:
    ((_, *found),) = judged(row, a_round(0))
    assert tuple(found) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (losing(3_000.0, 3_500.0), True),
        (losing(3_000.0, 3_700.0), None),
        (losing(3_700.0, 4_000.0), False),
        (losing(0.0, 0.0), True),
        (losing(None, 3_500.0, "retention_bytes"), True),
        (losing(None, 4_000.0, "before_rounds"), None),
        (losing(3_000.0, 3_500.0, loses_data_by="create_time"), False),
        (losing(3_000.0, 3_500.0, members=0), None),
        (losing(1_000.0, 1_500.0, loses_data_retention_seconds=1_800.0), False),
        (losing(100.0, 150.0, loses_data_retention_seconds=1_800.0), True),
        (losing(None, None, "keeps_up", loses_data_by=None), False),
        (losing(None, None, "retention_unknown", loses_data_by=None), None),
    ],
)
def test_the_shipped_rule_fires_only_where_the_end_of_retention_is_certain(
    row: dict[str, Any], expected: bool | None
) -> None:
    made = _RULES["loses_data"]
    held = Standing(SCHEMA)
    held.begin({})
    rows = pa.Table.from_pylist([row], schema=SCHEMA)
    chunk = Chunk((a_round(0),), {"group_health": rows}, held.at([a_round(0)], rows))
    active = [(made.name, json.dumps({"group_id": "g"}, separators=(",", ":")))]
    (observed,) = Conditions([made]).rounds(chunk, active)
    (seen,) = observed.seen
    assert seen.condition is expected
    if expected:
        assert seen.message.startswith("g may lose unread records of orders 3: their retention ends in ")


def test_a_rule_uses_one_of_the_two_measures_that_go_on_with_the_time(tmp_path: Path) -> None:
    both = """\
  - name: both
    view: group_health_current
    when: loses_data_in_seconds < 60 AND time_behind_seconds > 60
    severity: warning
    message: "{group_id}"
"""
    with pytest.raises(RulesError, match="loses_data_in_seconds and time_behind_seconds are known as bounds"):
        rules(tmp_path, both)
