"""Charts as values for the browser's charting library, each with a sentence for who cannot see it. Pure.

What each kind draws is in `static/kinds.js`. For readers who cannot see a canvas, and for copying, each is a table of a
few steps as well, made of the chart's own values, so that both always say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row
from dashboards.spans import Range, Steps
from streaming.terminal import age


@dataclass(frozen=True, slots=True)
class Heard:
    """How long the value of a row holds.

    Attributes:
        until: The newest round; later values are unknown.
        reach: A living group has another row within this time.
    """

    until: datetime
    reach: timedelta


LEVELS: Final[Mapping[str, Sequence[int]]] = {
    "offsets": (1, 10, 100, 1_000, 10_000, 100_000),
    "seconds": (1, 10, 60, 600, 3_600, 86_400),
}
"""The lowest value of each darker colour, by what is shown: the same for every group, so that maps can be compared."""

_LONGEST_NAME: Final = 26

# Steps of a table: a screen reader reads each cell, and two dozen numbers show where a line rises.
_ROWS: Final = 24

# A map has two dimensions: twelve columns of sixty partitions are 720 cells.
_COLUMNS: Final = 12

# Steps of spans longer than two months are longer than a day: the date says more than the time of day.
_LONG_S: Final = 60 * 86_400

_SHAPES: Final = {(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}
"""Whether somebody joined and whether somebody left, as the number of a shape in kinds.js."""

_SECONDS: Final = {"minute": 60, "hour": 3_600, "day": 86_400}

_NOTHING: Final = "nothing was measured in this time"


def reaching(
    rows: Iterable[tuple[datetime, datetime, Any]], span: Range, heard: Heard
) -> list[tuple[datetime, datetime, Any, bool]]:
    """Values of a span that each hold until the next one, for at most `heard.reach`.

    Args:
        rows: When a value began, when it was last repeated, and the value, the oldest first, from before the span if
            there are any.
        span: What is shown.
        heard: How long a value holds.

    Returns:
        Begin and end within the span, the value, and whether another value follows at the end.
    """
    given = list(rows)
    following = [*(row[0] for row in given[1:]), heard.until]
    found = []
    for place, ((begin, last, value), after) in enumerate(zip(given, following, strict=False), start=1):
        end = min(after, last + heard.reach, span.end)
        if end > span.begin:
            found.append((max(begin, span.begin), end, value, end == after and place < len(given)))
    return found


def held(rows: Iterable[tuple[datetime, Sequence[float | None]]], span: Range, heard: Heard) -> list[list[Any]]:
    """Series of values that hold as `reaching` says; where nothing follows, there is a gap.

    Args:
        rows: Times with a value for each series, the oldest first.
        span: What is shown.
        heard: How long a value holds.

    Returns:
        The times in s since the epoch, and a list for each series; empty without rows.
    """
    drawn: list[tuple[int, Sequence[float | None]]] = []
    for begin, end, values, followed in reaching(((time, time, values) for time, values in rows), span, heard):
        drawn.append((int(begin.timestamp()), values))
        if not followed:
            last = int(end.timestamp())
            drawn += [(last, values), (last + 1, [None] * len(values))]
    times, values_of = [time for time, _ in drawn], [values for _, values in drawn]
    return [times, *(list(map(_short, line)) for line in zip(*values_of, strict=True))]


def measure_plot(
    series: Sequence[Sequence[Any]],
    span: Range,
    names: Sequence[str],
    *,
    unit: str = "",
    lowest_top: float = 1.0,
    points: bool = False,
    rules: Iterable[datetime] = (),
) -> dict[str, Any]:
    """Lines of one unit on one axis.

    Args:
        series: Times in s since the epoch, and the values of each line; None is a gap.
        span: What is shown.
        names: Names of the lines.
        unit: What follows a value: "/s", or a word such as "bytes"; "count" for whole numbers without one, "" for
            ratios.
        lowest_top: The axis reaches to this value at least, so that noise around 0 does not look like mountains.
        points: Whether values stand for steps of their own (roll-ups), and are joined by straight lines.
        rules: Moments with a hairline.
    """
    lines = [*series[1:], *([] for _ in names)][: len(names)]
    return {
        "kind": "measure",
        "x": _x(span),
        "series": [list(series[0]) if series else [], *map(list, lines)],
        "names": list(names),
        "unit": unit,
        "top": lowest_top,
        "points": points,
        "rules": [int(rule.timestamp()) for rule in rules],
        "told": _told_lines(lines, names, unit),
    }


def count_plot(rows: Sequence[Row], span: Range, step: str, kinds: Mapping[str, str], column: str) -> dict[str, Any]:
    """Counts in steps, as bars that are stacked.

    Args:
        rows: Rows of verdict_steps.sql.
        span: What is shown.
        step: minute, hour or day.
        kinds: Names of the kinds of bars by the values of `column`; the first stands at the bottom.
        column: What tells the kinds apart.
    """
    counted: dict[int, dict[str, int]] = {}
    for row in rows:
        of_step = counted.setdefault(int(row["time"].timestamp()), {})
        of_step[row[column]] = of_step.get(row[column], 0) + row["verdicts"]
    times = sorted(counted)
    lines = [[counted[time].get(kind, 0) for time in times] for kind in kinds]
    said = (f"{words.number(sum(line))} {name}" for line, name in zip(lines, kinds.values(), strict=True))
    return {
        "kind": "counts",
        "x": _x(span),
        "width": _SECONDS[step],
        "series": [times, *lines],
        "names": list(kinds.values()),
        "styles": list(kinds),
        "told": ", ".join(said),
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
            [_SHAPES[bool(row["joined"]), bool(row["left"])] for row in shown],
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


def map_plot(
    lines: Mapping[str, Sequence[int | None]], steps: Steps, by: str, of_all: int, rest: int | None
) -> dict[str, Any]:
    """Values for the browser, and the sentence.

    Args:
        lines: A value for each column by the name of the partition, the worst first.
        steps: The columns.
        by: offsets or seconds.
        of_all: Partitions with those that are left out.
        rest: The highest value of those.
    """
    begin = int(steps.begin.timestamp())
    width = int(steps.width.total_seconds())
    return {
        "kind": "map",
        "x": [begin, begin + width * steps.number],
        "width": width,
        "unit": "s" if by == "seconds" else "",
        "levels": list(LEVELS[by]),
        "names": [words.cut(name, _LONGEST_NAME) for name in lines],
        "rows": list(map(list, lines.values())),
        "told": _told_map(lines, by, of_all, rest),
    }


def valued(value: int | None, by: str) -> str:
    """A value with its unit."""
    if value is None:
        return "not known"
    if by == "seconds":
        if value:
            return words.bounds(value, value)
        return "0 s"
    return words.number(value)


@words.known
def measured(value: float, unit: str) -> str:
    """A value with its unit; a dash for None."""
    if unit == "/s":
        return f"{words.rate(value)}/s"
    if unit in {"", "count"}:
        if unit:
            return words.number(value)
        return words.ratio(value)
    return f"{words.number(value)} {unit}"


def moment_of(begin: date) -> datetime:
    """The beginning of an hour as it is, or of a day, in UTC."""
    if isinstance(begin, datetime):
        return begin
    return datetime(begin.year, begin.month, begin.day, tzinfo=UTC)


def _x(span: Range) -> list[int]:
    return [int(span.begin.timestamp()), int(span.end.timestamp())]


def _short(value: float | None) -> float | None:
    """Four digits of a fraction: what a chart can show; a page with a thousand values is a third as long."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return value


def _told_lines(lines: Sequence[Sequence[float | None]], names: Sequence[str], unit: str) -> str:
    said = []
    for name, values in zip(names, lines, strict=True):
        known = [value for value in values if value is not None]
        if known:
            low, high, now = (measured(value, unit) for value in (min(known), max(known), known[-1]))
            said.append(f"{name} from {low} to {high}, last {now}")
    return "; ".join(said) or _NOTHING


def _told_moves(decisions: int, moved: int) -> str:
    return f"{words.number(decisions)} decisions, {words.number(moved)} partitions moved"


def _told_map(lines: Mapping[str, Sequence[int | None]], by: str, of_all: int, rest: int | None) -> str:
    known = [(value, name) for name, values in lines.items() for value in values if value is not None]
    if not known:
        return _NOTHING
    highest, worst = max(known, key=lambda one: one[0])
    text = f"{words.counted(of_all, 'partition')}; the worst is {words.cut(worst, 60)} with {valued(highest, by)}"
    text += " unread" if by == "offsets" else " or more behind"
    if of_all > len(lines):
        text += f"; the worst {len(lines)} are shown, no other was above {valued(rest, by)}"
    cells = sum(map(len, lines.values()))
    if len(known) < cells:
        text += f"; {max(1, round(100 * (cells - len(known)) / cells))} % of it is not known"
    return text


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
    if end - begin > _LONG_S:
        return f"{moment:%Y-%m-%d}"
    return words.time(moment, exact=False)
