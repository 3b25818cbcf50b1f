"""The charts of one group as values for a template: positions in percent, so that they fit any width.

We draw our own SVG because a refresh must not be visible: a charting library would redraw everything, ours changes only
the points that differ. Both charts share one time axis, so simultaneous events are aligned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from dashboards import format as words

__all__ = ["Heard", "lag_chart", "nice_steps", "rebalance_chart", "time_ticks"]

Row = Mapping[str, Any]
Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Heard:
    """How long the value of a row holds.

    Attributes:
        until: The newest round; later values are unknown.
        reach: A living group has another row within this time.
    """

    until: datetime
    reach: timedelta


# Columns that show a value under the pointer: as many as a hand can aim at.
_SLICES = 96

_TIME_STEPS_MIN = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080)
_MOST_TIME_TICKS = 8

_SHAPES = {"joined": "▲", "left": "▼", "joined and left": "◆", "other": "●"}


def lag_chart(
    rows: Sequence[Row], decisions: Sequence[Row], span: Span, clock: words.Clock, heard: Heard
) -> dict[str, Any]:
    """Lag over time: all partitions together and the worst one, with a hairline at each decision.

    A value holds until the next row while rows keep coming. There is a gap where no row came for longer than a
    heartbeat, and after the newest round.

    Args:
        rows: Rows of lag.sql, the oldest first, with rows before the span if there are any.
        decisions: Rows of rebalances.sql.
        span: First and last moment shown.
        clock: The viewer's clock.
        heard: How long a value holds.
    """
    held = [{**row, "end": end} for row, end in zip(rows, _ends(rows, span, heard), strict=True)]
    points = [{**row, "time": max(row["time"], span[0])} for row in held if row["end"] > span[0]]
    top = max([1, *(row["lag_total"] or 0 for row in points)])
    steps = nice_steps(top)
    return {
        "total": _line(points, "lag_total", span, steps[-1]),
        "area": _area(points, "lag_total", span, steps[-1]),
        "worst": _line(points, "lag_max", span, steps[-1]),
        "y": [{"at": 100 - 100 * value / steps[-1], "text": _short(value)} for value in steps],
        "x": time_ticks(span, clock),
        "rules": [_percent(row["record_time"], span) for row in decisions],
        "slices": _slices(points, span, clock),
        "known": bool(points),
    }


def rebalance_chart(decisions: Sequence[Row], span: Span, clock: words.Clock) -> dict[str, Any]:
    """Decisions over time: moves as bars, the necessary minimum as a tick across, the cause as the shape on top."""
    top = max(
        [
            4,
            *(row["partitions_moved"] or 0 for row in decisions),
            *(row["partitions_moved_optimal"] or 0 for row in decisions),
        ]
    )
    steps = nice_steps(top * 1.15, most=2)
    return {
        "bars": [_bar(row, span, steps[-1], clock) for row in decisions],
        "y": [{"at": 100 - 100 * value / steps[-1], "text": _short(value)} for value in steps],
        "shapes": _SHAPES,
    }


def nice_steps(top: float, most: int = 4) -> list[float]:
    """Round values from 0 to at least `top`, with at most `most` of them above 0."""
    raw = top / most
    power = 10 ** math.floor(math.log10(raw)) if raw > 0 else 1
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    step = max(1, step)
    return [step * at for at in range(math.ceil(top / step) + 1)]


def time_ticks(span: Span, clock: words.Clock) -> list[dict[str, Any]]:
    """Round times within a span, in the viewer's zone."""
    minutes = (span[1] - span[0]).total_seconds() / 60
    step = next((s for s in _TIME_STEPS_MIN if minutes / s <= _MOST_TIME_TICKS), _TIME_STEPS_MIN[-1])
    local = span[0].astimezone(clock.zone)
    # Counted in wall-clock minutes of the viewer's day, so that the ticks are full hours also in zones with a half-hour
    # offset.
    moment = local.replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    while (here := moment.astimezone(UTC)) <= span[1]:
        if here >= span[0]:
            text = f"{moment:%H:%M}" if step < 1440 else f"{moment.day} {moment:%b}"
            found.append({"at": _percent(here, span), "text": text})
        moment += timedelta(minutes=step)
    return found


def _percent(moment: datetime, span: Span) -> float:
    return round(100 * (moment - span[0]) / (span[1] - span[0]), 3)


def _ends(rows: Sequence[Row], span: Span, heard: Heard) -> list[datetime]:
    """The time until which each row's value holds."""
    following = [*(row["time"] for row in rows[1:]), heard.until]
    return [min(end, row["time"] + heard.reach, span[1]) for row, end in zip(rows, following, strict=False)]


def _runs(points: Sequence[Row], column: str, span: Span) -> Iterable[list[tuple[float, float, float]]]:
    """Periods with a known value: (from, to, value), from and to in percent."""
    run: list[tuple[float, float, float]] = []
    for row in points:
        begin, end = _percent(row["time"], span), _percent(row["end"], span)
        if run and (row[column] is None or begin > run[-1][1]):
            yield run
            run = []
        if row[column] is not None:
            run.append((begin, end, row[column]))
    if run:
        yield run


def _line(points: Sequence[Row], column: str, span: Span, top: float) -> str:
    """SVG path in a box of 1000 by 100."""
    parts = []
    for run in _runs(points, column, span):
        begin, _, value = run[0]
        parts.append(f"M{_x(begin)} {_y(value, top)}")
        parts += [f"H{_x(end)}V{_y(later[2], top)}" for (_, end, _), later in pairwise(run)]
        parts.append(f"H{_x(run[-1][1])}")
    return "".join(parts)


def _area(points: Sequence[Row], column: str, span: Span, top: float) -> str:
    parts = []
    for run in _runs(points, column, span):
        parts.append(f"M{_x(run[0][0])} 100")
        parts += [f"V{_y(value, top)}H{_x(end)}" for _, end, value in run]
        parts.append("V100Z")
    return "".join(parts)


def _x(percent: float) -> str:
    return f"{10 * percent:g}"


def _y(value: float, top: float) -> str:
    return f"{100 - 100 * value / top:.2f}"


def _slices(points: Sequence[Row], span: Span, clock: words.Clock) -> list[str]:
    """Texts shown under the pointer, from left to right: the value in the middle of each slice."""
    if not points:
        return []
    width = (span[1] - span[0]) / _SLICES
    found, at = [], -1
    for number in range(_SLICES):
        moment = span[0] + (number + 0.5) * width
        while at + 1 < len(points) and points[at + 1]["time"] <= moment:
            at += 1
        if at < 0 or points[at]["end"] < moment:
            found.append("")
            continue
        row = points[at]
        unknown = f", {row['unknown']} partitions unknown" if row["unknown"] else ""
        values = f"lag {words.number(row['lag_total'])}, worst partition {words.number(row['lag_max'])}"
        found.append(f"{clock.time(moment)}  {values}{unknown}")
    return found


def _bar(row: Row, span: Span, top: float, clock: words.Clock) -> dict[str, Any]:
    joined, left = bool(row["joined"]), bool(row["left"])
    shape = "joined and left" if joined and left else "joined" if joined else "left" if left else "other"
    moves = "moves not known" if row["partitions_moved"] is None else f"{words.number(row['partitions_moved'])} moves"
    least = (
        "" if row["partitions_moved_optimal"] is None else f", {words.number(row['partitions_moved_optimal'])} needed"
    )
    return {
        "key": f"{row['decision']}/{row['generation']}",
        "at": _percent(row["record_time"], span),
        "height": 100 * (row["partitions_moved"] or 0) / top,
        "least": None if row["partitions_moved_optimal"] is None else 100 * row["partitions_moved_optimal"] / top,
        "shape": _SHAPES[shape],
        "tip": f"{clock.time(row['record_time'])}  {words.cause(row)}: {moves}{least}",
    }


def _short(value: float) -> str:
    """A value on an axis: "0", "500", "2k", "1.5M"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
