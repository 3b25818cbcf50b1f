"""The charts' values, with hand-written rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboards.boards.lag_map import lines_of_hours, lines_of_rows
from dashboards.charts import Heard, held, map_plot, measure_plot, rebalance_plot
from dashboards.spans import Range, Steps, hours_of, minutes_of

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


# The heat map of partitions over time: what holds until the next row, and what is not known.


BEGIN = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
REACH = timedelta(minutes=4)


def row(minute: int, lag: int | None = 0, **more: Any) -> dict[str, Any]:
    """One row in the middle of a minute after 14:00."""
    at = BEGIN + minute * MINUTE
    hour = at.replace(minute=0)
    return {
        "topic": "t", "broker": None, "partition": 0, "hour": hour, "step": at.minute, "lag_max": lag,
        "behind_max": None, "lag_last": lag, "unread_last": None, "reason_last": "nothing_unread" if lag == 0 else None,
        "time_last": at + timedelta(seconds=30), "gone": False,
    } | more  # fmt: skip


def values(*rows: dict[str, Any], by: str = "offsets", until: int = 8) -> list[int | None]:
    steps = Steps(BEGIN, MINUTE, 8)
    (line,) = lines_of_rows(rows, steps, 1, Heard(BEGIN + until * MINUTE, REACH), by).values()
    return line


@pytest.mark.parametrize(
    ("rows", "until", "drawn"),
    [
        # A value holds until the next row, and counts in the step in which it ends.
        ((row(0, 9), row(2, 4), row(3, 5)), 8, [9, 9, 4, 5, 5, 5, 5, 5]),
        # A partition without rows for longer than a heartbeat is not known.
        ((row(0, 9),), 8, [9, 9, 9, 9, 9, None, None, None]),
        # A row before the map holds into it.
        ((row(-2, 7), row(3, 1)), 8, [7, 7, 7, 1, 1, 1, 1, 1]),
        # Nothing is known after the newest round.
        ((row(0, 9),), 2, [9, 9, None, None, None, None, None, None]),
        # A lag that is not known is not zero.
        ((row(0, 9), row(1, None), row(2, 0)), 8, [9, None, 0, 0, 0, 0, 0, None]),
        # A partition that is gone holds nothing.
        ((row(0, 9), row(1, None, gone=True)), 8, [9, None, None, None, None, None, None, None]),
    ],
)
def test_a_value_holds_while_it_is_known(rows: tuple[Any, ...], until: int, drawn: list[int | None]) -> None:
    assert values(*rows, until=until) == drawn


def test_the_time_that_a_record_waits_grows_until_the_next_row() -> None:
    waiting = row(0, 9, unread_last=BEGIN, behind_max=timedelta(seconds=30), reason_last=None)
    assert values(waiting, row(3, 0), by="seconds")[:5] == [60, 120, 180, 0, 0]


def test_seconds_behind_are_not_known_where_the_lag_is_not() -> None:
    assert values(row(0, None, reason_last="lag_unknown"), by="seconds")[0] is None
    assert values(row(0, 1, reason_last="one_offset"), by="seconds")[0] == 0


def test_an_hour_without_a_row_is_zero_only_where_the_group_was_observed_and_the_partition_was_there() -> None:
    def hour(step: int, lag: int | None) -> dict[str, Any]:
        day = BEGIN.replace(hour=0)
        return {"topic": "t", "broker": None, "partition": 0, "day": day, "step": step, "lag_max": lag}

    steps = Steps(BEGIN, timedelta(hours=1), 6)
    (line,) = lines_of_hours([hour(15, 8), hour(18, None)], steps, 1, {0, 1, 2, 4}).values()
    assert line == [None, 8, 0, None, None, None]


def test_the_sentence_counts_what_is_left_out_and_what_is_not_known() -> None:
    steps = Steps(BEGIN, MINUTE, 4)
    lines = lines_of_rows([row(0, 1_200)], steps, 1, Heard(BEGIN + 2 * MINUTE, REACH), "offsets")
    told = map_plot(lines, steps, "offsets", 500, 12)["told"]
    assert told == (
        "500 partitions; the worst is t 0 with 1,200 unread; the worst 1 are shown, no other was above 12; "
        "50 % of it is not known"
    )
    assert map_plot({}, steps, "offsets", 0, None)["told"] == "nothing was measured in this time"


@pytest.mark.parametrize("days", [2, 7, 30, 365, 3 * 366])
def test_no_span_has_more_columns_than_can_be_seen(days: int) -> None:
    assert timedelta(days=days) / timedelta(hours=hours_of(timedelta(days=days))) <= 101
    assert 24 % hours_of(timedelta(days=days)) == 0 or hours_of(timedelta(days=days)) % 24 == 0


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_steps_of_minutes_divide_an_hour(hours: int) -> None:
    assert 60 % minutes_of(timedelta(hours=hours)) == 0
