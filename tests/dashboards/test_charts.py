from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from dashboards.charts import Heard, lag_chart, nice_steps, rebalance_chart, time_ticks
from dashboards.format import Clock

END = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SPAN = (END - timedelta(hours=1), END)
CLOCK = Clock(END, ZoneInfo("UTC"))
HEARD = Heard(until=END, reach=timedelta(hours=2))


def lag(minutes_ago: int, total: int | None) -> dict[str, Any]:
    return {"time": END - timedelta(minutes=minutes_ago), "lag_total": total, "lag_max": total, "unknown": 0}


def test_a_value_holds_until_the_next_and_from_before_the_span() -> None:
    chart = lag_chart([lag(90, 50), lag(30, 100)], [], SPAN, CLOCK, HEARD)
    assert [tick["text"] for tick in chart["y"]] == ["0", "50", "100"]
    assert chart["total"] == "M0 50.00H500V0.00H1000"


def test_an_unknown_lag_is_a_gap_and_not_a_zero() -> None:
    chart = lag_chart([lag(60, 100), lag(45, None), lag(15, 100)], [], SPAN, CLOCK, HEARD)
    assert chart["total"] == "M0 0.00H250M750 0.00H1000"
    assert chart["slices"][48].endswith("lag \N{EN DASH}, worst partition \N{EN DASH}")


def test_nothing_is_drawn_for_a_time_of_which_nothing_was_heard() -> None:
    heard = Heard(until=END - timedelta(minutes=6), reach=timedelta(minutes=15))
    chart = lag_chart([lag(60, 100), lag(12, 50)], [], SPAN, CLOCK, heard)
    assert chart["total"] == "M0 0.00H250M800 50.00H900"
    assert [bool(tip) for tip in chart["slices"]] == [at < 24 or 76 < at < 86 for at in range(96)]


def test_a_bar_stands_where_its_lag_does_and_tells_moves_and_the_least() -> None:
    decision = {"record_time": END - timedelta(minutes=15), "decision": 1, "generation": 2, "partitions_moved": 6,
                "partitions_moved_optimal": 2, "joined": [], "left": ["a"], "replaced": [], "kind": "rebalance",
                "follows": None,
                "generations_skipped": 0}  # fmt: skip
    bar = rebalance_chart([decision], SPAN, CLOCK)["bars"][0]
    assert (bar["at"], bar["shape"], bar["tip"]) == (75.0, "▼", "11:45:00  1 left: 6 moves, 2 needed")
    assert bar["height"] == 3 * bar["least"]


def test_steps_are_round_and_reach_the_top() -> None:
    assert nice_steps(12_400) == [0, 5_000, 10_000, 15_000]
    assert nice_steps(1) == [0, 1]
    assert nice_steps(4.6, most=2) == [0, 5]


def test_times_at_the_axis_are_round_in_the_viewers_zone() -> None:
    ticks = time_ticks(SPAN, Clock(END, ZoneInfo("Asia/Kathmandu")))
    assert [tick["text"] for tick in ticks] == ["16:50", "17:00", "17:10", "17:20", "17:30", "17:40"]
    assert ticks[0]["at"] == round(100 * 5 / 60, 3)
