"""The lag of each partition of one group over time: which partitions lag, and when, in offsets or in seconds behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards.boards.group import history_of, named_group
from dashboards.charts.heat import LEVELS, HeatRow, lines_of_hours, lines_of_rows, map_plot, valued
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, name_of
from dashboards.spans import Range, Steps, floor, hours_of, minutes_of

__all__ = ["BOARD"]

# As many lines as a screen holds at a readable height; the table below names the worst of them.
_MOST: Final = 60
_TOLD: Final = 15


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
    live = view.now - span.end < width
    end = floor(span.end, width)
    number = max(1, -(-span.length // width))
    steps = Steps(end - (number - live) * width, width, number)
    name = name_of(group)
    since = floor(steps.begin - view.lake.reach, width)
    rows = view.newest("lag_map", width, **name, since=since, until=end, minutes=minutes, by=by, most=_MOST)
    until = min(view.newest_round(group["cluster"]), span.end)
    if live:
        # The present on top of the map of the last whole step.
        rows = [*rows, *_now(view, group, rows, minutes)]
    lines = lines_of_rows(rows, steps, minutes, view.lake.reach, until, by)
    rest = rows[0][f"rest_{'lag' if by == 'offsets' else 'behind'}_max"] if rows else None
    rest = int(rest.total_seconds()) if isinstance(rest, timedelta) else rest
    return _Found(lines, steps, rows[0]["of_all"] if rows else 0, rest)


def _now(view: View, group: Row, rows: Sequence[Row], minutes: int) -> list[dict[str, Any]]:
    """The present of the partitions that have a line, as further rows of the query."""
    newest: dict[tuple[Any, ...], datetime] = {}
    for row in rows:
        newest[row["topic"], row["broker"], row["partition"]] = row["time_last"]
    found: list[dict[str, Any]] = []
    for row in view.rows("partitions", **name_of(group)):
        topic = row["topic"].partition("@")[0]  # partitions.sql names RocketMQ's with their brokers
        known, time = newest.get((topic, row["broker"], row["partition"])), row["round_time"]
        if known is None or time <= known:
            continue
        found.append(
            {
                "topic": topic,
                "broker": row["broker"],
                "partition": row["partition"],
                "hour": floor(time, timedelta(hours=1)),
                "step": time.minute // minutes,
                "lag_max": row["lag"],
                "behind_max": None,
                "lag_last": row["lag"],
                "unread_last": row["oldest_unread_time_max"],
                "reason_last": row["oldest_unread_reason"],
                "time_last": time,
                "gone": not row["subscribed"],
            }
        )
    return found


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


BOARD = Board(
    path=("groups", "{group}", "lag"),
    template="lag_map.html.j2",
    fill=_fill,
    title="Lag of {group} by partition · Evenkeel",
    parameters=TIMES | {"by"},
)
