"""Charts of measures over time (rates, imbalances, sizes) and of counts, as values for the browser. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.charts.plots import Heard
from dashboards.format import Row
from dashboards.spans import Range

__all__ = ["count_plot", "held", "measure_plot", "measured", "step_of"]


_STEPS: Final = ((timedelta(hours=6), "minute"), (timedelta(days=7), "hour"))
"""Length of a bar or point by the length of the span; a day beyond: never more than some 400 of them."""

_SECONDS: Final = {"minute": 60, "hour": 3_600, "day": 86_400}


def step_of(span: Range) -> str:
    """minute, hour or day: the step of date_trunc in which a span is drawn."""
    return next((step for longest, step in _STEPS if span.length <= longest), "day")


def held(rows: Iterable[tuple[datetime, Sequence[float | None]]], span: Range, heard: Heard) -> list[list[Any]]:
    """Series of values that each hold until the next one, for at most `heard.reach`; then there is a gap.

    Args:
        rows: Times with a value for each series, the oldest first.
        span: What is shown.
        heard: How long a value holds.

    Returns:
        The times in s since the epoch, and a list for each series.
    """
    given = list(rows)
    following = [*(time for time, _ in given[1:]), heard.until]
    drawn: list[tuple[int, Sequence[float | None]]] = []
    for (time, values), after in zip(given, following, strict=False):
        end = min(after, time + heard.reach, span.end)
        if end <= span.begin:
            continue
        drawn.append((int(max(time, span.begin).timestamp()), values))
        if end < after or after is heard.until:
            drawn.append((int(end.timestamp()), values))
            drawn.append((int(end.timestamp()) + 1, [None] * len(values)))
    number = len(given[0][1]) if given else 0
    return [[time for time, _ in drawn], *([_short(values[at]) for _, values in drawn] for at in range(number))]


def measure_plot(
    series: Sequence[Sequence[Any]],
    span: Range,
    names: Sequence[str],
    *,
    unit: str = "",
    lowest_top: float = 1.0,
    points: bool = False,
) -> dict[str, Any]:
    """Lines of one unit on one axis.

    Args:
        series: Times in s since the epoch, and the values of each line; None is a gap.
        span: What is shown.
        names: Names of the lines.
        unit: What follows a value: "/s", "bytes" or nothing.
        lowest_top: The axis reaches to this value at least, so that noise around 0 does not look like mountains.
        points: Whether values stand for steps of their own (roll-ups), and are joined by straight lines.
    """
    return {
        "kind": "measure",
        "x": [int(span.begin.timestamp()), int(span.end.timestamp())],
        "series": [list(values) for values in series] or [[], *([] for _ in names)],
        "names": list(names),
        "unit": unit,
        "top": lowest_top,
        "points": points,
        "told": _told_lines(series[1:], names, unit),
    }


def count_plot(rows: Sequence[Row], span: Range, step: str, kinds: Mapping[str, str], column: str) -> dict[str, Any]:
    """Counts in steps, as bars that are stacked.

    Args:
        rows: Rows with `time`, `verdict` and `verdicts`.
        span: What is shown.
        step: Length of a bar: minute, hour or day.
        kinds: Names of the parts from the bottom up, by the value of the column.
        column: The column with these values.
    """
    counted: dict[int, dict[str, int]] = {}
    for row in rows:
        of_step = counted.setdefault(int(row["time"].timestamp()), {})
        of_step[row[column]] = of_step.get(row[column], 0) + row["verdicts"]
    times = sorted(counted)
    sums = {kind: sum(counted[time].get(kind, 0) for time in times) for kind in kinds}
    return {
        "kind": "counts",
        "x": [int(span.begin.timestamp()), int(span.end.timestamp())],
        "width": _SECONDS[step],
        "series": [times, *([counted[time].get(kind, 0) for time in times] for kind in kinds)],
        "names": list(kinds.values()),
        "styles": list(kinds),
        "told": ", ".join(f"{words.number(sums[kind])} {name}" for kind, name in kinds.items()) or "nothing",
    }


def _short(value: float | None) -> float | None:
    """Four digits: what a chart can show; a page with a thousand values is a third as long."""
    return None if value is None else float(f"{value:.4g}")


def _told_lines(lines: Sequence[Sequence[float | None]], names: Sequence[str], unit: str) -> str:
    said = []
    for name, values in zip(names, lines, strict=False):
        known = [value for value in values if value is not None]
        if known:
            said.append(f"{name} from {measured(min(known), unit)} to {measured(max(known), unit)}")
    return "; ".join(said) or "nothing was measured in this time"


def measured(value: float | None, unit: str) -> str:
    """A value with its unit; a dash for None."""
    if value is None:
        return words.DASH
    if unit == "/s":
        return f"{words.rate(value)}/s"
    return f"{words.number(value)} {unit}" if unit else words.ratio(value)
