"""The lag of each partition of one group over time: which partitions lag, and when, in offsets or in seconds behind.

What is not known stays None: a partition without rows for longer than a heartbeat, an hour without rounds, a lag that
rows say is not known. Nothing is filled in for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards.boards.group import history_of, named_group
from dashboards.charts import LEVELS, Heard, map_plot, reaching, valued
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, name_of
from dashboards.spans import DAY, Range, Steps, floor, hours_of, minutes_of

# As many lines as a screen holds at a readable height; the table below names the worst of them.
_MOST: Final = 60
_TOLD: Final = 15

_READ: Final = frozenset({"nothing_unread", "one_offset"})
"""Reasons for a missing bound that say that nothing waits (one offset may be a transaction marker)."""

Lines = dict[str, list[int | None]]
"""A value for each column by the name of the partition, the worst first; None where it is not known."""


def _fill(view: View) -> Mapping[str, Any]:
    group, span = named_group(view), view.span
    by = view.address.one_of("by", LEVELS) or "offsets"
    raw = view.in_memory(span)
    shown = {
        "group": group,
        "by": by,
        "choices": view.chips("by", LEVELS, first="offsets"),
        "no_seconds": not raw and by == "seconds",
        "levels": [valued(level, by) for level in LEVELS[by]],
        "plot": None,
        "worst": [],
    }
    if shown["no_seconds"]:
        return shown
    rows, lines, steps = _of_rows(view, group, span, by) if raw else _of_hours(view, group, span)
    if view.unread:
        return shown
    of_all, rest = (rows[0]["of_all"], rows[0][_REST[by]]) if rows else (0, None)
    rest = int(rest.total_seconds()) if isinstance(rest, timedelta) else rest
    worst = [_worst(name, lines[name], steps, by) for name in list(lines)[:_TOLD]]
    return {**shown, "plot": map_plot(lines, steps, by, of_all, rest), "worst": worst}


_REST: Final = {"offsets": "rest_lag_max", "seconds": "rest_behind_max"}
"""The column with the highest value of the partitions that are left out."""


def _of_rows(view: View, group: Row, span: Range, by: str) -> tuple[Sequence[Row], Lines, Steps]:
    minutes = minutes_of(span.length)
    width = timedelta(minutes=minutes)
    # Whole steps, so that the same question is asked for as long as a step; the last one goes on.
    end = floor(span.end, width) + (view.now - span.end < width) * width
    number = max(1, -(-span.length // width))
    steps = Steps(end - number * width, width, number)
    since = floor(steps.begin - view.lake.reach, width)
    rows = view.newest("lag_map", width, **name_of(group), since=since, until=end, minutes=minutes, by=by, most=_MOST)
    until = min(view.newest_round(group["cluster"]), span.end)
    return rows, lines_of_rows(rows, steps, minutes, Heard(until, view.lake.reach), by), steps


def _of_hours(view: View, group: Row, span: Range) -> tuple[Sequence[Row], Lines, Steps]:
    hours = hours_of(span.length)
    width = timedelta(hours=hours)
    begin = floor(span.begin, min(width, DAY))
    steps = Steps(begin, width, max(1, -(-(span.end - begin) // width)))
    until = span.end.replace(second=0, microsecond=0)
    within_day = min(hours, 24)
    rows = view.rows("lag_map_hours", **name_of(group), since=begin, until=until, hours=within_day, most=_MOST)
    observed: set[int] = set()
    for row in history_of(view, group, Range(span.name, begin, span.end)):
        parts = 1 if "hour" in row else -(-DAY // width)
        observed.update(steps.at(row["time"] + part * width) for part in range(parts))
    return rows, lines_of_hours(rows, steps, within_day, observed), steps


def _worst(name: str, values: Sequence[int | None], steps: Steps, by: str) -> dict[str, Any]:
    known = [(value, column) for column, value in enumerate(values) if value is not None]
    highest, column = max(known, default=(None, 0))
    return {
        "name": name,
        "highest": valued(highest, by),
        "when": steps.begin + column * steps.width if highest else None,
        "last": valued(values[-1], by),
        "unknown": 1 - len(known) / len(values),
    }


def lines_of_rows(rows: Sequence[Row], steps: Steps, minutes: int, heard: Heard, by: str) -> Lines:
    """Partitions by rows of lag_map.sql, in the order of their first rows.

    A value holds until the next row, for at most the reach; the time that a record waits grows meanwhile.

    Args:
        rows: The rows, also some from before the first column.
        steps: The columns; each a whole number of the query's steps.
        minutes: Length of the query's steps.
        heard: How long a value holds.
        by: offsets or seconds.
    """
    return {name: _held(found, steps, minutes, heard, by) for name, found in _by_partition(rows).items()}


def lines_of_hours(rows: Sequence[Row], steps: Steps, hours: int, observed: Collection[int]) -> Lines:
    """Partitions by rows of lag_map_hours.sql, in the order of their first rows.

    In a column without a row the lag was 0 if the group was observed, from the first row on: earlier the partition may
    not have been there.

    Args:
        rows: The rows.
        steps: The columns.
        hours: Length of the query's steps.
        observed: Columns in which the group was observed.
    """
    lines: Lines = {}
    for name, found in _by_partition(rows).items():
        seen: dict[int, list[int]] = {}
        for row in found:
            values = seen.setdefault(steps.at(row["day"] + row["step"] * timedelta(hours=hours)), [])
            if row["lag_max"] is not None:
                values.append(row["lag_max"])
        first = min(seen)
        lines[name] = [
            max(seen[column], default=None) if column in seen else 0 if column in observed and column > first else None
            for column in range(steps.number)
        ]
    return lines


def _by_partition(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        number = row["partition"] if row["broker"] is None else f"{row['broker']}/{row['partition']}"
        found.setdefault(f"{row['topic']} {number}", []).append(row)
    return found


def _held(rows: Sequence[Row], steps: Steps, minutes: int, heard: Heard, by: str) -> list[int | None]:
    """The highest value of each column."""
    values: list[int | None] = [None] * steps.number

    def put(column: int, value: int | None) -> None:
        if 0 <= column < steps.number and value is not None:
            values[column] = max(value, values[column] or 0)

    begun = [row["hour"] + timedelta(minutes=minutes) * row["step"] for row in rows]
    changes = ((begin, row["time_last"], (begin, row)) for begin, row in zip(begun, rows, strict=True))
    span = Range("", steps.begin, steps.end(steps.number - 1))
    for _, end, (begin, row), _ in reaching(changes, span, heard):
        put(steps.at(begin), _value(row, by))
        at = end if row["gone"] else max(row["time_last"], steps.begin)
        while at < end:
            column = steps.at(at)
            put(column, _value(row, by, min(end, steps.end(column))))
            at = steps.end(column)
    return values


def _value(row: Row, by: str, at: datetime | None = None) -> int | None:
    """The highest value of a row's own step, or what holds of it at a later moment."""
    if by == "offsets":
        highest: int | None = row["lag_max"] if at is None else None
        last: int | None = row["lag_last"]
        if highest is None:
            return last
        return highest
    # For so long at least the oldest unread record had waited.
    waited = [row["behind_max"]] if at is None and row["behind_max"] is not None else []
    if row["unread_last"] is not None:
        waited.append((at or row["time_last"]) - row["unread_last"])
    if waited:
        return max(0, int(max(waited).total_seconds()))
    if row["reason_last"] in _READ:
        return 0
    return None


BOARD = Board(
    path=("groups", "{group}", "lag"),
    template="lag_map.html.j2",
    fill=_fill,
    title="Lag of {group} by partition · Evenkeel",
    parameters=TIMES | {"by"},
)
