"""Charts as tables of a few steps, for readers who cannot see a canvas, and for copying. Pure.

They are made of the charts' own values, so that both always say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from dashboards import format as words
from dashboards.charts.heat import valued
from dashboards.charts.plots import measured

__all__ = ["table_of"]

# Steps of a table: a screen reader reads each cell, and two dozen numbers show where a line rises.
_ROWS: Final = 24

# A map has two dimensions: twelve columns of sixty partitions are 720 cells.
_COLUMNS: Final = 12

# Steps of spans longer than two months are longer than a day: the date says more than the time of day.
_LONG_S: Final = 60 * 86_400

Plot = Mapping[str, Any]


def table_of(plot: Plot) -> dict[str, Any]:
    """A chart as a table.

    Args:
        plot: Values of a chart of any kind.

    Returns:
        "head": names of the columns; "rows": texts, of which the first is the time or the partition; times are marks
        (`format.time`).
    """
    return _TABLES[plot["kind"]](plot)


def _measure(plot: Plot) -> dict[str, Any]:
    """The highest value of each line in each step; a value that holds counts in all steps it reaches."""
    times, *lines = plot["series"]
    begin, width = _steps(plot)
    steps: list[list[Sequence[float | None]]] = [[] for _ in range(_ROWS)]
    for time, after, *values in zip(times, [*times, plot["x"][1]][1:], *lines, strict=True):
        at = int((time - begin) // width)
        until = at if plot["points"] else int((max(time, after - 1) - begin) // width)
        for step in range(max(0, at), min(_ROWS - 1, until) + 1):
            steps[step].append(values)
    return {
        "head": ["from", *(f"{name}, highest" for name in plot["names"])],
        "rows": [
            [
                _time(begin + step * width, plot),
                *(measured(_most(each[line] for each in values), plot["unit"]) for line in range(len(lines))),
            ]
            for step, values in enumerate(steps)
        ],
    }


def _decisions(plot: Plot) -> dict[str, Any]:
    """Decisions and moves in each step."""
    many = plot["kind"] == "steps"
    rows = (
        (time, last if many else 1, moved or 0, 0 if None in {moved, least} else max(0, moved - least))
        for time, moved, least, last in zip(*plot["series"], strict=True)
    )
    return _sums(plot, ("decisions", "partitions moved", "more than needed"), rows)


def _counts(plot: Plot) -> dict[str, Any]:
    return _sums(plot, plot["names"], zip(*plot["series"], strict=True))


def _sums(plot: Plot, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """Sums of each step, by the time that each row begins with; steps without any are left out."""
    begin, width = _steps(plot)
    sums: dict[int, list[int]] = {}
    for time, *counts in rows:
        step = max(0, min(_ROWS - 1, int((time - begin) // width)))
        sums[step] = [known + more for known, more in zip(sums.get(step, [0] * len(counts)), counts, strict=True)]
    return {
        "head": ["from", *names],
        "rows": [
            [_time(begin + step * width, plot), *map(words.number, found)]
            for step, found in sorted(sums.items())
            if any(found)
        ],
    }


def _map(plot: Plot) -> dict[str, Any]:
    """The highest value of each partition in each of at most twelve steps."""
    begin, end = plot["x"]
    number = (end - begin) // plot["width"]
    each = -(-number // _COLUMNS)
    firsts = range(0, number, each)
    by = "seconds" if plot["unit"] == "s" else "offsets"
    return {
        "head": ["partition", *(_time(begin + first * plot["width"], plot) for first in firsts)],
        "rows": [
            [name, *(valued(_most(values[first : first + each]), by) for first in firsts)]
            for name, values in zip(plot["names"], plot["rows"], strict=True)
        ],
    }


_TABLES: Final[Mapping[str, Callable[[Plot], dict[str, Any]]]] = {
    "measure": _measure,
    "counts": _counts,
    "rebalances": _decisions,
    "steps": _decisions,
    "map": _map,
}


def _steps(plot: Plot) -> tuple[int, float]:
    begin, end = plot["x"]
    return begin, (end - begin) / _ROWS


def _most(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


def _time(second: float, plot: Plot) -> str:
    moment = datetime.fromtimestamp(int(second), UTC)
    begin, end = plot["x"]
    return f"{moment:%Y-%m-%d}" if end - begin > _LONG_S else words.time(moment, exact=False)
