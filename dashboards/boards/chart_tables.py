"""Charts as tables of a few steps, for readers who cannot see a canvas, and for copying. Pure.

They are made of the charts' own values, so that both always say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.heat import Line, valued
from dashboards.boards.steps import Steps
from dashboards.format import Clock

__all__ = ["decisions_table", "lag_table", "map_table"]

# Steps of a table: a screen reader reads each cell, and two dozen numbers show where a line rises.
_ROWS: Final = 24

# A map has two dimensions: twelve columns of sixty partitions are 720 cells.
_COLUMNS: Final = 12

# Steps of spans longer than two months are longer than a day: the date says more than the time of day.
_LONG_S: Final = 60 * 86_400


def lag_table(plot: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """The highest lag in each step, of `lag_plot` or `history_plot`.

    A value of `lag_plot` also counts in the steps that it only reaches into.
    """
    holds = plot["kind"] == "lag"
    times, first, second = plot["series"]
    begin, width = _steps(plot)
    steps: list[list[tuple[float | None, float | None]]] = [[] for _ in range(_ROWS)]
    for time, after, one, other in zip(times, [*times, plot["x"][1]][1:], first, second, strict=True):
        at = int((time - begin) // width)
        until = int(max(time, after - 1) - begin) // width if holds else at
        for step in range(max(0, at), min(_ROWS - 1, int(until)) + 1):
            steps[step].append((one, other))
    return {
        "head": ["From", "All partitions", "Worst partition" if holds else "Mean"],
        "rows": [
            [_time(begin + step * width, plot, clock), *(_highest(place, values) for place in (0, 1))]
            for step, values in enumerate(steps)
        ],
    }


def decisions_table(plot: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """Decisions and moves in each step, of `rebalance_plot` or `step_plot`; steps without a decision are left out."""
    many = plot["kind"] == "steps"
    begin, width = _steps(plot)
    sums: dict[int, list[int]] = {}
    for time, moved, least, last in zip(*plot["series"], strict=True):
        of_step = sums.setdefault(max(0, min(_ROWS - 1, int((time - begin) // width))), [0, 0, 0])
        of_step[0] += last if many else 1
        of_step[1] += moved or 0
        of_step[2] += (least if least is not None else moved) or 0
    return {
        "head": ["From", "Decisions", "Partitions moved", "More than needed"],
        "rows": [
            [
                _time(begin + step * width, plot, clock),
                words.number(count),
                words.number(moved),
                words.number(max(0, moved - least)),
            ]
            for step, (count, moved, least) in sorted(sums.items())
            if count
        ],
    }


def map_table(lines: Sequence[Line], steps: Steps, by: str, clock: Clock) -> dict[str, Any]:
    """The highest value of each partition in each of twelve steps, of `map_plot`."""
    each = -(-steps.number // _COLUMNS)
    begins = range(0, steps.number, each)
    length = (steps.width * steps.number).total_seconds()
    return {
        "head": ["Partition", *(_moment(steps.begin + first * steps.width, length, clock) for first in begins)],
        "rows": [
            [
                words.cut(line.name, 60),
                *(valued(_most(line.values[first : first + each]), by) for first in begins),
            ]
            for line in lines
        ],
    }


def _steps(plot: Mapping[str, Any]) -> tuple[int, float]:
    begin, end = plot["x"]
    return begin, (end - begin) / _ROWS


def _highest(place: int, values: Iterable[tuple[float | None, float | None]]) -> str:
    return words.number(_most(value[place] for value in values))


def _most(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


def _time(second: float, plot: Mapping[str, Any], clock: Clock) -> str:
    return _moment(datetime.fromtimestamp(int(second), UTC), plot["x"][1] - plot["x"][0], clock)


def _moment(moment: datetime, seconds: float, clock: Clock) -> str:
    return f"{moment:%Y-%m-%d}" if seconds > _LONG_S else clock.time(moment, exact=False)
