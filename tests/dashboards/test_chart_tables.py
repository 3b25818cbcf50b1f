"""Charts as tables, with hand-written values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

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
from dashboards.spans import Range, Steps, steps_of

BEGIN = datetime(2026, 11, 20, 0, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPAN = Range("24h", BEGIN, BEGIN + 24 * HOUR)
HEARD = Heard(until=SPAN.end, reach=2 * HOUR)


def at(hour: int) -> str:
    """The mark of an hour: 24 rows of 24 hours begin at the hour."""
    return time(BEGIN + hour * HOUR, exact=False)


def by_time(plot: dict[str, Any]) -> dict[str, list[str]]:
    """The rows of a chart's table, by their first cell."""
    return {row[0]: row[1:] for row in table_of(plot)["rows"]}


def test_a_row_has_the_highest_lag_of_its_step_and_a_dash_where_nothing_was_known() -> None:
    given = ((0, 5), (0.5, 70), (1, 10), (2.5, 20), (9, 1_234))
    series = held(((BEGIN + hours * HOUR, (lag, lag)) for hours, lag in given), SPAN, HEARD)
    rows = by_time(measure_plot(series, SPAN, ("all", "worst"), unit="count"))
    assert len(rows) == 24
    # The value of one o'clock holds until half past two, the one of then for two hours at the most.
    assert [rows[at(hour)][0] for hour in range(7)] == ["70", "10", "20", "20", "20", DASH, DASH]
    assert rows[at(9)] == ["1,234", "1,234"]


def test_decisions_are_summed_by_step_and_an_unknown_least_is_no_saving() -> None:
    decisions: list[dict[str, Any]] = [
        {"record_time": BEGIN + hours * HOUR, "partitions_moved": moved, "partitions_moved_optimal": least,
         "joined": [], "left": []}
        for hours, moved, least in ((23.5, 4, 1), (3.9, None, None), (3.2, 9, None), (3.1, 6, 2))
    ]  # fmt: skip
    table = table_of(rebalance_plot(decisions, SPAN))
    assert table["head"] == ["from", "decisions", "partitions moved", "more than needed"]
    assert table["rows"] == [[at(3), "3", "15", "4"], [at(23), "1", "4", "3"]]


@pytest.mark.nightly
def test_sums_of_many_decisions_give_the_same_table_as_the_decisions() -> None:
    span = Range("", BEGIN, BEGIN + 24 * HOUR)
    times = [HOUR * n / 100 for n in range(2_400)]
    decisions: list[dict[str, Any]] = [
        {"record_time": BEGIN + time, "partitions_moved": 3, "partitions_moved_optimal": 1, "joined": [], "left": []}
        for time in reversed(times)
    ]
    sums = [
        {"time": BEGIN + minute * timedelta(minutes=1), "decisions": n, "partitions_moved": 3 * n,
         "moves_avoidable": 2 * n}
        for minute in range(1_440)
        if (n := sum(time // timedelta(minutes=1) == minute for time in times))
    ]  # fmt: skip
    plot = step_plot(sums, steps_of(span.begin, span.end), span)
    # Steps of 15 minutes: an hour is four of them.
    assert plot["width"] == 900
    assert table_of(plot)["rows"] == table_of(rebalance_plot(decisions, span))["rows"]


def test_a_measure_that_holds_is_in_every_step_it_reaches_and_has_its_unit() -> None:
    series = held([(BEGIN, [0.04]), (BEGIN + 3 * HOUR, [1234.5])], SPAN, Heard(SPAN.end, 1.5 * HOUR))
    table = table_of(measure_plot(series, SPAN, ("produced",), unit="/s"))
    assert table["head"] == ["from", "produced, highest"]
    assert [row[1] for row in table["rows"]][:6] == ["<0.1/s", "<0.1/s", DASH, "1,234/s", "1,234/s", DASH]


def test_points_of_rollups_stand_for_their_own_step_alone() -> None:
    times = [int((BEGIN + hour * HOUR).timestamp()) for hour in (0, 5)]
    table = table_of(measure_plot([times, [2, 3]], SPAN, ("produced",), unit="/s", points=True))
    assert [row[1] for row in table["rows"]][:7] == ["2.0/s", DASH, DASH, DASH, DASH, "3.0/s", DASH]


def test_counts_are_summed_by_step_and_kind() -> None:
    rows = [
        {"time": BEGIN + minutes * timedelta(minutes=1), "verdict": verdict, "verdicts": n}
        for minutes, verdict, n in (
            (61, "identical", 5),
            (90, "identical", 1),
            (119, "drifted", 2),
            (120, "drifted", 1),
        )
    ]
    plot = count_plot(rows, SPAN, "minute", {"drifted": "drifted", "identical": "as expected"}, "verdict")
    assert table_of(plot) == {
        "head": ["from", "drifted", "as expected"],
        "rows": [[at(1), "2", "6"], [at(2), "1", "0"]],
    }


def test_a_map_has_the_highest_value_of_each_partition_in_twelve_columns() -> None:
    steps = Steps(BEGIN, HOUR / 4, 96)
    values: list[int | None] = [None] * 8 + list(range(88))
    plot = map_plot({"orders 3": values}, steps, "offsets", 1, None)
    table = table_of(plot)
    assert table["head"] == ["partition", *(at(2 * column) for column in range(12))]
    assert table["rows"] == [["orders 3", "not known", *(str(8 * column + 7) for column in range(11))]]
