"""Charts and their tables, with hand-written values: what holds, for how long, and what is not known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboards.boards.group import HeldValue, held_in, rolled_up, times_of
from dashboards.boards.lag_map import lines_of_hours, lines_of_rows
from dashboards.charts import (
    Heard,
    count_plot,
    held,
    map_plot,
    measure_plot,
    rebalance_plot,
    step_plot,
    table_of,
)
from dashboards.format import DASH, time
from dashboards.spans import Range, Steps, hours_of, minutes_of, steps_of

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


def step_row(minute: int, lag: int | None = 0, **more: Any) -> dict[str, Any]:
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
        ((step_row(0, 9), step_row(2, 4), step_row(3, 5)), 8, [9, 9, 4, 5, 5, 5, 5, 5]),
        # A partition without rows for longer than a heartbeat is not known.
        ((step_row(0, 9),), 8, [9, 9, 9, 9, 9, None, None, None]),
        # A row before the map holds into it.
        ((step_row(-2, 7), step_row(3, 1)), 8, [7, 7, 7, 1, 1, 1, 1, 1]),
        # Nothing is known after the newest round.
        ((step_row(0, 9),), 2, [9, 9, None, None, None, None, None, None]),
        # A lag that is not known is not zero.
        ((step_row(0, 9), step_row(1, None), step_row(2, 0)), 8, [9, None, 0, 0, 0, 0, 0, None]),
        # A partition that is gone holds nothing.
        ((step_row(0, 9), step_row(1, None, gone=True)), 8, [9, None, None, None, None, None, None, None]),
    ],
)
def test_a_value_holds_while_it_is_known(rows: tuple[Any, ...], until: int, drawn: list[int | None]) -> None:
    assert values(*rows, until=until) == drawn


def test_the_time_that_a_record_waits_grows_until_the_next_row() -> None:
    waiting = step_row(0, 9, unread_last=BEGIN, behind_max=timedelta(seconds=30), reason_last=None)
    assert values(waiting, step_row(3, 0), by="seconds")[:5] == [60, 120, 180, 0, 0]


def test_seconds_behind_are_not_known_where_the_lag_is_not() -> None:
    assert values(step_row(0, None, reason_last="lag_unknown"), by="seconds")[0] is None
    assert values(step_row(0, 1, reason_last="one_offset"), by="seconds")[0] == 0


def test_an_hour_without_a_row_is_zero_only_where_the_group_was_observed_and_the_partition_was_there() -> None:
    def hour(step: int, lag: int | None) -> dict[str, Any]:
        day = BEGIN.replace(hour=0)
        return {"topic": "t", "broker": None, "partition": 0, "day": day, "step": step, "lag_max": lag}

    steps = Steps(BEGIN, timedelta(hours=1), 6)
    (line,) = lines_of_hours([hour(15, 8), hour(18, None)], steps, 1, {0, 1, 2, 4}).values()
    assert line == [None, 8, 0, None, None, None]


def test_the_sentence_counts_what_is_left_out_and_what_is_not_known() -> None:
    steps = Steps(BEGIN, MINUTE, 4)
    lines = lines_of_rows([step_row(0, 1_200)], steps, 1, Heard(BEGIN + 2 * MINUTE, REACH), "offsets")
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


MIDNIGHT = datetime(2026, 11, 20, 0, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
A_DAY = Range("24h", MIDNIGHT, MIDNIGHT + 24 * HOUR)
ALL_DAY = Heard(until=A_DAY.end, reach=2 * HOUR)


def mark(hour: int) -> str:
    """The mark of an hour: 24 rows of 24 hours begin at the hour."""
    return time(MIDNIGHT + hour * HOUR, exact=False)


def by_time(plot: dict[str, Any]) -> dict[str, list[str]]:
    """The rows of a chart's table, by their first cell."""
    return {row[0]: row[1:] for row in table_of(plot)["rows"]}


def test_a_row_has_the_highest_lag_of_its_step_and_a_dash_where_nothing_was_known() -> None:
    given = ((0, 5), (0.5, 70), (1, 10), (2.5, 20), (9, 1_234))
    series = held(((MIDNIGHT + hours * HOUR, (lag, lag)) for hours, lag in given), A_DAY, ALL_DAY)
    rows = by_time(measure_plot(series, A_DAY, ("all", "worst"), unit="count"))
    assert len(rows) == 24
    # The value of one o'clock holds until half past two, the one of then for two hours at the most.
    assert [rows[mark(hour)][0] for hour in range(7)] == ["70", "10", "20", "20", "20", DASH, DASH]
    assert rows[mark(9)] == ["1,234", "1,234"]


def test_decisions_are_summed_by_step_and_an_unknown_least_is_no_saving() -> None:
    decisions: list[dict[str, Any]] = [
        {"record_time": MIDNIGHT + hours * HOUR, "partitions_moved": moved, "partitions_moved_optimal": least,
         "joined": [], "left": []}
        for hours, moved, least in ((23.5, 4, 1), (3.9, None, None), (3.2, 9, None), (3.1, 6, 2))
    ]  # fmt: skip
    table = table_of(rebalance_plot(decisions, A_DAY))
    assert table["head"] == ["from", "decisions", "partitions moved", "more than needed"]
    assert table["rows"] == [[mark(3), "3", "15", "4"], [mark(23), "1", "4", "3"]]


@pytest.mark.nightly
def test_sums_of_many_decisions_give_the_same_table_as_the_decisions() -> None:
    span = Range("", MIDNIGHT, MIDNIGHT + 24 * HOUR)
    times = [HOUR * n / 100 for n in range(2_400)]
    decisions: list[dict[str, Any]] = [
        {"record_time": MIDNIGHT + time, "partitions_moved": 3, "partitions_moved_optimal": 1, "joined": [], "left": []}
        for time in reversed(times)
    ]
    sums = [
        {"time": MIDNIGHT + minute * timedelta(minutes=1), "decisions": n, "partitions_moved": 3 * n,
         "moves_avoidable": 2 * n}
        for minute in range(1_440)
        if (n := sum(time // timedelta(minutes=1) == minute for time in times))
    ]  # fmt: skip
    plot = step_plot(sums, steps_of(span.begin, span.end), span)
    # Steps of 15 minutes: an hour is four of them.
    assert plot["width"] == 900
    assert table_of(plot)["rows"] == table_of(rebalance_plot(decisions, span))["rows"]


def test_a_measure_that_holds_is_in_every_step_it_reaches_and_has_its_unit() -> None:
    series = held([(MIDNIGHT, [0.04]), (MIDNIGHT + 3 * HOUR, [1234.5])], A_DAY, Heard(A_DAY.end, 1.5 * HOUR))
    table = table_of(measure_plot(series, A_DAY, ("produced",), unit="/s"))
    assert table["head"] == ["from", "produced, highest"]
    assert [row[1] for row in table["rows"]][:6] == ["<0.1/s", "<0.1/s", DASH, "1,234/s", "1,234/s", DASH]


def test_points_of_rollups_stand_for_their_own_step_alone() -> None:
    times = [int((MIDNIGHT + hour * HOUR).timestamp()) for hour in (0, 5)]
    table = table_of(measure_plot([times, [2, 3]], A_DAY, ("produced",), unit="/s", points=True))
    assert [row[1] for row in table["rows"]][:7] == ["2.0/s", DASH, DASH, DASH, DASH, "3.0/s", DASH]


def test_counts_are_summed_by_step_and_kind() -> None:
    rows = [
        {"time": MIDNIGHT + minutes * timedelta(minutes=1), "verdict": verdict, "verdicts": n}
        for minutes, verdict, n in (
            (61, "identical", 5),
            (90, "identical", 1),
            (119, "drifted", 2),
            (120, "drifted", 1),
        )
    ]
    plot = count_plot(rows, A_DAY, "minute", {"drifted": "drifted", "identical": "as expected"}, "verdict")
    assert table_of(plot) == {
        "head": ["from", "drifted", "as expected"],
        "rows": [[mark(1), "2", "6"], [mark(2), "1", "0"]],
    }


def test_a_map_has_the_highest_value_of_each_partition_in_twelve_columns() -> None:
    steps = Steps(MIDNIGHT, HOUR / 4, 96)
    values: list[int | None] = [None] * 8 + list(range(88))
    plot = map_plot({"orders 3": values}, steps, "offsets", 1, None)
    table = table_of(plot)
    assert table["head"] == ["partition", *(mark(2 * column) for column in range(12))]
    assert table["rows"] == [["orders 3", "not known", *(str(8 * column + 7) for column in range(11))]]


NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
AN_HOUR = Range("live", NOON, NOON + timedelta(hours=1))
HEARTBEAT = timedelta(minutes=12)


def minute(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def changed(minutes: float, state: str, *, last: float | None = None, **values: Any) -> dict[str, Any]:
    """A row of states.sql; `last` is the minute of the last row before the next change."""
    given = {"verdict": "identical", "lag_status": "ok", "findings": [], "ended": False} | values
    return {
        "round_time": minute(minutes),
        "last_time": minute(minutes if last is None else last),
        "state": state,
        **given,
    }


def held_states(*rows: dict[str, Any], until: float = 60) -> list[HeldValue]:
    return held_in(rows, AN_HOUR, Heard(minute(until), HEARTBEAT))["state"]


def test_a_state_holds_from_its_first_row_to_the_next_change() -> None:
    assert held_states(
        changed(-5, "Stable", last=29), changed(30, "PreparingRebalance", last=31), changed(32, "Stable", last=59)
    ) == [
        HeldValue("Stable", minute(0), minute(30), whole=False),
        HeldValue("PreparingRebalance", minute(30), minute(32), whole=True),
        HeldValue("Stable", minute(32), minute(60), whole=True),
    ]


def test_a_change_of_another_column_does_not_end_a_state() -> None:
    rows = (changed(1, "Stable", last=9), changed(10, "Stable", verdict="drifted", last=59))
    assert held_states(*rows) == [HeldValue("Stable", minute(1), minute(60), whole=False)]
    assert held_in(rows, AN_HOUR, Heard(minute(60), HEARTBEAT))["verdict"] == [
        HeldValue("identical", minute(1), minute(10), whole=False),
        HeldValue("drifted", minute(10), minute(60), whole=True),
    ]


def test_nothing_holds_while_no_row_comes_for_longer_than_a_heartbeat() -> None:
    assert held_states(changed(0, "Stable", last=10), changed(50, "Stable", last=59)) == [
        HeldValue("Stable", minute(0), minute(22), whole=False),
        HeldValue("Stable", minute(50), minute(60), whole=True),
    ]


def test_nothing_holds_after_the_newest_round_nor_of_a_group_that_has_ended() -> None:
    assert held_states(changed(0, "Stable", last=30), until=33) == [
        HeldValue("Stable", minute(0), minute(33), whole=False)
    ]
    assert held_states(changed(0, "Stable", last=29), changed(30, "Deleted", ended=True)) == [
        HeldValue("Stable", minute(0), minute(30), whole=False)
    ]


def test_each_finding_is_a_measure_of_its_own() -> None:
    found = [{"finding": "unassigned", "since": minute(5), "detail": "t 1"}]
    rows = (changed(0, "Stable", last=4), changed(5, "Stable", findings=found, last=9), changed(10, "Stable", last=59))
    held = held_in(rows, AN_HOUR, Heard(minute(60), HEARTBEAT))
    assert held["finding unassigned"] == [HeldValue("holds", minute(5), minute(10), whole=True)]


def test_times_are_summed_by_value_the_longest_first() -> None:
    rows = (changed(0, "Stable", last=9), changed(10, "Empty", last=49), changed(50, "Stable", last=59))
    assert times_of({"state": held_states(*rows)})["state"] == {
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
