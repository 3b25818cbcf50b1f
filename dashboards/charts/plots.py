"""Charts as values for the browser's charting library, each with a sentence for who cannot see it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.charts.steps import Steps
from dashboards.format import Row
from dashboards.spans import Range
from streaming.terminal import age

__all__ = ["Heard", "history_plot", "lag_plot", "rebalance_plot", "step_plot"]


@dataclass(frozen=True, slots=True)
class Heard:
    """How long the value of a row holds.

    Attributes:
        until: The newest round; later values are unknown.
        reach: A living group has another row within this time.
    """

    until: datetime
    reach: timedelta


_SHAPES: Final = {"joined": 0, "left": 1, "joined and left": 2, "other": 3}
"""What happened, as the number of a shape in kinds.js."""


def lag_plot(rows: Sequence[Row], decisions: Sequence[Row], span: Range, heard: Heard) -> dict[str, Any]:
    """Lag over time: all partitions together and the worst one.

    A value holds until the next row while rows keep coming. There is a gap where no row came for longer than a
    heartbeat, and after the newest round.

    Args:
        rows: Rows of lag.sql, the oldest first, with rows before the span if there are any.
        decisions: Rows of rebalances.sql, drawn as hairlines.
        span: What is shown.
        heard: How long a value holds.
    """
    following = [*(row["time"] for row in rows[1:]), heard.until]
    times: list[int] = []
    total: list[int | None] = []
    worst: list[int | None] = []

    def put(moment: datetime, of_all: int | None, of_one: int | None) -> None:
        times.append(int(moment.timestamp()))
        total.append(of_all)
        worst.append(of_one)

    for row, after in zip(rows, following, strict=False):  # (none follows where there is no row)
        end = min(after, row["time"] + heard.reach, span.end)
        if end <= span.begin:
            continue
        put(max(row["time"], span.begin), row["lag_total"], row["lag_max"])
        if end < after or after is heard.until:
            put(end, row["lag_total"], row["lag_max"])
            put(end + timedelta(seconds=1), None, None)
    return {
        "kind": "lag",
        "x": _x(span),
        "series": [times, total, worst],
        "rules": [int(row["record_time"].timestamp()) for row in decisions],
        "told": _told_lag(total, worst),
    }


def history_plot(rows: Sequence[Row], span: Range, time: str) -> dict[str, Any]:
    """Lag over months: the highest and the mean of each hour or day.

    Args:
        rows: Rows of group_hours.sql or group_days.sql.
        span: What is shown.
        time: Name of their column with the beginning of the hour, or the day.
    """
    times = [_start(row[time]) for row in rows]
    total = [row["lag_total_max"] for row in rows]
    worst = [row["lag_max"] for row in rows]
    return {
        "kind": "history",
        "x": _x(span),
        "series": [
            times,
            total,
            [None if row["lag_total_mean"] is None else round(row["lag_total_mean"], 1) for row in rows],
        ],
        "rules": [],
        "told": _told_lag(total, worst),
    }


def rebalance_plot(decisions: Sequence[Row], span: Range) -> dict[str, Any]:
    """Decisions over time: moves as stems, the fewest needed as a tick across, what happened as the shape on top."""
    shown = list(reversed(decisions))
    return {
        "kind": "rebalances",
        "x": _x(span),
        "series": [
            [int(row["record_time"].timestamp()) for row in shown],
            [row["partitions_moved"] for row in shown],
            [row["partitions_moved_optimal"] for row in shown],
            [_shape(row) for row in shown],
        ],
        "told": _told_moves(len(shown), sum(row["partitions_moved"] or 0 for row in shown)),
    }


def step_plot(rows: Sequence[Row], steps: Steps, span: Range) -> dict[str, Any]:
    """Many decisions over time: a bar of moves for each step, and the fewest needed as a tick across.

    Args:
        rows: Rows of rebalance_steps.sql.
        steps: The columns; a row belongs to the one in which its own step begins.
        span: What is shown.
    """
    decisions, moved, avoidable = ([0] * steps.number for _ in range(3))
    for row in rows:
        column = steps.at(row["time"])
        if 0 <= column < steps.number:
            decisions[column] += row["decisions"]
            moved[column] += row["partitions_moved"] or 0
            avoidable[column] += row["moves_avoidable"] or 0
    width = int(steps.width.total_seconds())
    begin = int(steps.begin.timestamp())
    told = _told_moves(sum(decisions), sum(moved))
    if any(decisions):
        most = max(range(steps.number), key=lambda column: moved[column])
        told += f"; most in {age(steps.width)}: {words.number(moved[most])} by {words.number(decisions[most])} of them"
    return {
        "kind": "steps",
        "x": _x(span),
        "width": width,
        "series": [
            [begin + column * width for column in range(steps.number)],
            moved,
            [all_ - more for all_, more in zip(moved, avoidable, strict=True)],
            decisions,
        ],
        "told": told,
    }


def _told_moves(decisions: int, moved: int) -> str:
    return f"{words.number(decisions)} decisions, {words.number(moved)} partitions moved"


def _x(span: Range) -> list[int]:
    return [int(span.begin.timestamp()), int(span.end.timestamp())]


def _shape(row: Row) -> int:
    joined, left = bool(row["joined"]), bool(row["left"])
    return _SHAPES["joined and left" if joined and left else "joined" if joined else "left" if left else "other"]


def _start(begin: date) -> int:
    moment = begin if isinstance(begin, datetime) else datetime(begin.year, begin.month, begin.day, tzinfo=UTC)
    return int(moment.timestamp())


def _told_lag(total: Sequence[int | None], worst: Sequence[int | None]) -> str:
    known = [value for value in total if value is not None]
    if not known:
        return "no lag was measured in this time"
    highest = max((value for value in worst if value is not None), default=None)
    return (
        f"lag of all partitions from {words.number(min(known))} to {words.number(max(known))}, "
        f"now {words.number(known[-1])}; worst partition {words.number(highest)}"
    )
