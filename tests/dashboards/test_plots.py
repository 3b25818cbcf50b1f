"""The charts' values, with hand-written rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards.charts.plots import Heard, lag_plot, rebalance_plot
from dashboards.spans import Range

END = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SPAN = Range("live", END - timedelta(hours=1), END)
HEARD = Heard(until=END, reach=timedelta(hours=2))


def lag(minutes_ago: int, total: int | None) -> dict[str, Any]:
    return {"time": END - timedelta(minutes=minutes_ago), "lag_total": total, "lag_max": total, "unknown": 0}


def totals(chart: dict[str, Any]) -> list[tuple[float, int | None]]:
    """Minutes before the end, and the lag from then on; the second after a value's end counts with it."""
    times, total, _ = chart["series"]
    return [(round((END.timestamp() - at) / 60), value) for at, value in zip(times, total, strict=True)]


def test_a_value_holds_until_the_next_and_from_before_the_span() -> None:
    assert totals(lag_plot([lag(90, 50), lag(30, 100)], [], SPAN, HEARD)) == [(60, 50), (30, 100), (0, 100), (0, None)]


def test_an_unknown_lag_is_a_gap_and_not_a_zero() -> None:
    chart = lag_plot([lag(60, 100), lag(45, None), lag(15, 100)], [], SPAN, HEARD)
    assert totals(chart) == [(60, 100), (45, None), (15, 100), (0, 100), (0, None)]
    assert chart["told"] == "lag of all partitions from 100 to 100, now 100; worst partition 100"


def test_nothing_is_drawn_for_a_time_of_which_nothing_was_heard() -> None:
    heard = Heard(until=END - timedelta(minutes=6), reach=timedelta(minutes=15))
    chart = lag_plot([lag(60, 100), lag(12, 50)], [], SPAN, heard)
    assert totals(chart) == [(60, 100), (45, 100), (45, None), (12, 50), (6, 50), (6, None)]
    assert lag_plot([], [], SPAN, heard)["told"] == "no lag was measured in this time"


def test_a_decision_stands_at_its_time_and_tells_moves_and_the_least() -> None:
    decision = {"record_time": END - timedelta(minutes=15), "partitions_moved": 6, "partitions_moved_optimal": 2,
                "joined": [], "left": ["a"]}  # fmt: skip
    chart = rebalance_plot([decision], SPAN)
    assert chart["series"] == [[int(END.timestamp()) - 900], [6], [2], [1]]
    assert chart["x"] == [int(END.timestamp()) - 3600, int(END.timestamp())]
    assert chart["told"] == "1 decisions, 6 partitions moved"
