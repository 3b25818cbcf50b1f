"""The charts' values, with hand-written rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards.charts import Heard, held, measure_plot, rebalance_plot
from dashboards.spans import Range

END = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SPAN = Range("live", END - timedelta(hours=1), END)
HEARD = Heard(until=END, reach=timedelta(hours=2))


def lines(*rows: tuple[int, int | None], heard: Heard = HEARD) -> list[list[Any]]:
    """Two lines of the same lag, of rows of minutes before the end and a lag."""
    return held(((END - timedelta(minutes=ago), (total, total)) for ago, total in rows), SPAN, heard)


def totals(series: list[list[Any]]) -> list[tuple[float, int | None]]:
    """Minutes before the end, and the lag from then on; the second after a value's end counts with it."""
    times, total, _ = series
    return [(round((END.timestamp() - at) / 60), value) for at, value in zip(times, total, strict=True)]


def test_a_value_holds_until_the_next_and_from_before_the_span() -> None:
    assert totals(lines((90, 50), (30, 100))) == [(60, 50), (30, 100), (0, 100), (0, None)]


def test_an_unknown_lag_is_a_gap_and_not_a_zero() -> None:
    series = lines((60, 100), (45, None), (15, 100))
    assert totals(series) == [(60, 100), (45, None), (15, 100), (0, 100), (0, None)]
    chart = measure_plot(series, SPAN, ("lag", "worst"), unit="count", rules=[END])
    assert chart["told"] == "lag from 100 to 100, last 100; worst from 100 to 100, last 100"
    assert chart["rules"] == [END.timestamp()]


def test_nothing_is_drawn_for_a_time_of_which_nothing_was_heard() -> None:
    heard = Heard(until=END - timedelta(minutes=6), reach=timedelta(minutes=15))
    series = lines((60, 100), (12, 50), heard=heard)
    assert totals(series) == [(60, 100), (45, 100), (45, None), (12, 50), (6, 50), (6, None)]
    assert lines(heard=heard) == [[]]
    assert measure_plot([], SPAN, ("lag",))["told"] == "nothing was measured in this time"


def test_large_whole_numbers_stay_exact_and_fractions_are_cut_to_what_a_chart_shows() -> None:
    _, whole, part = held([(END - timedelta(hours=1), (1_234_567, 0.123456))], SPAN, HEARD)
    assert (whole[0], part[0]) == (1_234_567, 0.1235)


def test_a_decision_stands_at_its_time_and_tells_moves_and_the_least() -> None:
    decision = {"record_time": END - timedelta(minutes=15), "partitions_moved": 6, "partitions_moved_optimal": 2,
                "joined": [], "left": ["a"]}  # fmt: skip
    chart = rebalance_plot([decision], SPAN)
    assert chart["series"] == [[int(END.timestamp()) - 900], [6], [2], [1]]
    assert chart["x"] == [int(END.timestamp()) - 3600, int(END.timestamp())]
    assert chart["told"] == "1 decisions, 6 partitions moved"
