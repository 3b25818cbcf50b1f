"""The lag of each partition of one group over time: which partitions lag, and when, in offsets or in seconds behind.

What is not known stays None: a partition without rows for longer than a heartbeat, an hour without rounds, a lag that
rows say is not known. Nothing is filled in for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards.boards.group import history_of, named_group
from dashboards.charts import LEVELS, HeatRow, map_plot, valued
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, name_of
from dashboards.spans import Range, Steps, floor, hours_of, minutes_of

__all__ = ["BOARD", "lines_of_hours", "lines_of_rows"]

# As many lines as a screen holds at a readable height; the table below names the worst of them.
_MOST: Final = 60
_TOLD: Final = 15


_READ: Final = frozenset({"nothing_unread", "one_offset"})
"""Reasons for a missing bound that say that nothing waits (one offset may be a transaction marker)."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to draw: partitions, the worst first, columns, how many there are in all, the worst left out."""

    lines: list[HeatRow]
    steps: Steps
    of_all: int
    rest: int | None


def _fill(view: View) -> Mapping[str, Any]:
    group, span = named_group(view), view.span
    by = view.address.one_of("by", LEVELS) or "offsets"
    raw = view.in_memory(span)
    found = _of_rows(view, group, span, by) if raw else _of_hours(view, group, span) if by == "offsets" else None
    drawn = found is not None and not view.unread
    return {
        "group": group,
        "by": by,
        "choices": view.chips("by", LEVELS, first="offsets"),
        "no_seconds": not raw and by == "seconds",
        "levels": [valued(level, by) for level in LEVELS[by]],
        "plot": map_plot(found.lines, found.steps, by, found.of_all, found.rest) if found and drawn else None,
        "worst": [_worst(line, found.steps, by) for line in found.lines[:_TOLD]] if found and drawn else [],
    }


def _of_rows(view: View, group: Row, span: Range, by: str) -> _Found:
    minutes = minutes_of(span.length)
    width = timedelta(minutes=minutes)
    # Whole steps, so that the same question is asked for as long as a step; the last one goes on.
    end = floor(span.end, width) + (view.now - span.end < width) * width
    number = max(1, -(-span.length // width))
    steps = Steps(end - number * width, width, number)
    since = floor(steps.begin - view.lake.reach, width)
    rows = view.newest("lag_map", width, **name_of(group), since=since, until=end, minutes=minutes, by=by, most=_MOST)
    until = min(view.newest_round(group["cluster"]), span.end)
    lines = lines_of_rows(rows, steps, minutes, view.lake.reach, until, by)
    rest = rows[0][f"rest_{'lag' if by == 'offsets' else 'behind'}_max"] if rows else None
    rest = int(rest.total_seconds()) if isinstance(rest, timedelta) else rest
    return _Found(lines, steps, rows[0]["of_all"] if rows else 0, rest)


def _of_hours(view: View, group: Row, span: Range) -> _Found:
    hours = hours_of(span.length)
    width, day = timedelta(hours=hours), timedelta(days=1)
    begin = floor(span.begin, min(width, day))
    steps = Steps(begin, width, max(1, -(-(span.end - begin) // width)))
    within_day = min(hours, 24)
    rows = view.rows(
        "lag_map_hours",
        **name_of(group),
        since=begin,
        until=span.end.replace(second=0, microsecond=0),
        hours=within_day,
        most=_MOST,
    )
    columns: set[int] = set()
    for row in history_of(view, group, Range(span.name, begin, span.end)):
        parts = 1 if "hour" in row else -(-day // width)
        columns.update(steps.at(row["time"] + part * width) for part in range(parts))
    lines = lines_of_hours(rows, steps, within_day, columns)
    return _Found(lines, steps, rows[0]["of_all"] if rows else 0, rows[0]["rest_lag_max"] if rows else None)


def _worst(line: HeatRow, steps: Steps, by: str) -> dict[str, Any]:
    known = [(value, column) for column, value in enumerate(line.values) if value is not None]
    highest, column = max(known, default=(None, 0))
    return {
        "name": line.name,
        "highest": valued(highest, by),
        "when": steps.begin + column * steps.width if highest else None,
        "last": valued(line.values[-1] if line.values else None, by),
        "unknown": 1 - len(known) / len(line.values) if line.values else 0,
    }


def lines_of_rows(
    rows: Sequence[Row], steps: Steps, minutes: int, reach: timedelta, until: datetime, by: str
) -> list[HeatRow]:
    """Partitions by rows of lag_map.sql, in the order of their first rows.

    A value holds until the next row, for at most `reach`; the time that a record waits grows meanwhile.

    Args:
        rows: The rows, also some from before the first column.
        steps: The columns; each a whole number of the query's steps.
        minutes: Length of the query's steps.
        reach: A partition that lives has another row within this time.
        until: The newest round; nothing is known of later.
        by: offsets or seconds.
    """
    return [
        HeatRow(name, _held(found, steps, minutes, reach, until, _offsets if by == "offsets" else _seconds))
        for name, found in _by_partition(rows)
    ]


def lines_of_hours(rows: Sequence[Row], steps: Steps, hours: int, observed: Collection[int]) -> list[HeatRow]:
    """Partitions by rows of lag_map_hours.sql, in the order of their first rows.

    In a column without a row the lag was 0 if the group was observed, from the first row on: earlier the partition may
    not have been there.

    Args:
        rows: The rows.
        steps: The columns.
        hours: Length of the query's steps.
        observed: Columns in which the group was observed.
    """
    lines = []
    for name, found in _by_partition(rows):
        values: list[int | None] = [None] * steps.number
        seen: dict[int, list[int | None]] = {}
        for row in found:
            seen.setdefault(steps.at(row["day"] + row["step"] * timedelta(hours=hours)), []).append(row["lag_max"])
        first = min(seen)
        for column in range(max(0, first), steps.number):
            if column in seen:
                values[column] = max((value for value in seen[column] if value is not None), default=None)
            elif column in observed:
                values[column] = 0
        lines.append(HeatRow(name, values))
    return lines


def _by_partition(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["topic"], row["broker"], row["partition"]), []).append(row)
    return [
        (f"{topic} {partition}" if broker is None else f"{topic} {broker}/{partition}", of_one)
        for (topic, broker, partition), of_one in found.items()
    ]


def _offsets(highest: int | None, last: Row, at: datetime) -> int | None:
    """The lag of a step, or what holds of it at a later moment."""
    del at
    return highest if highest is not None else last["lag_last"]


def _seconds(highest: timedelta | None, last: Row, at: datetime) -> int | None:
    """For so long at least the oldest unread record had waited."""
    if last["unread_last"] is not None:
        now = at - last["unread_last"]
        return max(0, int(max(now, highest or now).total_seconds()))
    if highest is not None:
        return max(0, int(highest.total_seconds()))
    return 0 if last["reason_last"] in _READ else None


def _held(
    rows: Sequence[Row], steps: Steps, minutes: int, reach: timedelta, until: datetime, value_at: Any
) -> list[int | None]:
    values: list[int | None] = [None] * steps.number

    def put(column: int, value: int | None) -> None:
        if 0 <= column < steps.number and value is not None:
            known = values[column]
            values[column] = value if known is None else max(known, value)

    for row, after in zip(rows, [*rows[1:], None], strict=True):
        begin = row["hour"] + timedelta(minutes=minutes) * row["step"]
        highest = row["lag_max"] if value_at is _offsets else row["behind_max"]
        put(steps.at(begin), value_at(highest, row, row["time_last"]))
        if row["gone"]:
            continue
        following = until if after is None else after["hour"] + timedelta(minutes=minutes) * after["step"]
        end = min(following, row["time_last"] + reach, until)
        for column in range(max(0, steps.at(row["time_last"])), steps.number):
            from_ = max(steps.begin + column * steps.width, row["time_last"])
            if from_ >= end:
                break
            put(column, value_at(None, row, min(end, steps.end(column))))
    return values


BOARD = Board(
    path=("groups", "{group}", "lag"),
    template="lag_map.html.j2",
    fill=_fill,
    title="Lag of {group} by partition · Evenkeel",
    parameters=TIMES | {"by"},
)
