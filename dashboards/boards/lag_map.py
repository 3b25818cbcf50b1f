"""The lag of each partition of one group over time: which partitions lag, and when, in offsets or in seconds behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dashboards.boards.group import found_group
from dashboards.boards.parts.past import in_memory, ranges
from dashboards.charts.heat import LEVELS, HeatRow, lines_of_hours, lines_of_rows, map_plot, valued
from dashboards.charts.steps import Steps, floor, hours_of, minutes_of
from dashboards.format import Row
from dashboards.page.board import Board, View
from dashboards.spans import RANGES, Range

__all__ = ["BOARD"]

# As many lines as a screen holds at a readable height; the table below names the worst of them.
_MOST: Final = 60
_TOLD: Final = 15

# Longer spans are judged by the day: whether a group was observed is looked up in as many rows as there are days.
_BY_HOUR: Final = RANGES["30d"]


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to draw."""

    lines: list[HeatRow]
    steps: Steps
    of_all: int
    rest: int | None


def _fill(view: View) -> Mapping[str, Any]:
    group = found_group(view)
    by = view.address.one_of("by", LEVELS) or "offsets"
    span = view.address.range(view.now)
    raw = in_memory(view, span)
    found = None
    if raw:
        found = _of_rows(view, group, span, by)
    elif by == "offsets":
        found = _of_hours(view, group, span)
    named = {"cluster": group["cluster"] if view.cluster else None}
    return {
        "name": group["group_id"],
        "cluster": group["cluster"],
        "group_href": view.address.link("groups", group["group_id"], range=span.name, **named),
        "by": by,
        "choices": [
            {"word": word, "chosen": word == by, "href": view.address.here(by=None if word == "offsets" else word)}
            for word in LEVELS
        ],
        "ranges": ranges(view, span, RANGES),
        "reading": found is None and (raw or by == "offsets"),
        "no_seconds": not raw and by == "seconds",
        "offsets_href": view.address.here(by=None),
        "levels": [valued(level, by) for level in LEVELS[by]],
        "plot": None if found is None else map_plot(found.lines, found.steps, by, found.of_all, found.rest),
        "worst": [] if found is None else [_told(line, found.steps, by, view) for line in found.lines[:_TOLD]],
    }


def _of_rows(view: View, group: Row, span: Range, by: str) -> _Found | None:
    minutes = minutes_of(span.length)
    width = timedelta(minutes=minutes)
    live = view.now - span.end < width
    end = floor(span.end, width)
    number = max(1, -(-span.length // width))
    steps = Steps(end - (number - live) * width, width, number)

    def given(until: datetime) -> dict[str, Any]:
        return {
            "cluster": group["cluster"],
            "group_id": group["group_id"],
            "since": floor(steps.begin - view.lake.reach, timedelta(hours=1)),
            "until": until,
            "minutes": minutes,
            "by": by,
            "most": _MOST,
        }

    rows = view.archive.ask("lag_map", **given(end))
    if rows is None:
        # (The map of a moment ago with the present on top is better than none while the next step is read.)
        rows = view.archive.known("lag_map", **given(end - width))
    if rows is None:
        return None
    newest = next((r["round_time"] for r in view.ask("rounds") if r["cluster"] == group["cluster"]), view.now)
    until = min(newest, view.now, span.end)
    if live:
        rows = [*rows, *_now(view, group, rows, minutes)]
    lines = lines_of_rows(rows, steps, minutes, view.lake.reach, until, by)
    rest = rows[0][f"rest_{'lag' if by == 'offsets' else 'behind'}_max"] if rows else None
    return _Found(
        lines,
        steps,
        rows[0]["of_all"] if rows else 0,
        int(rest.total_seconds()) if isinstance(rest, timedelta) else rest,
    )


def _now(view: View, group: Row, rows: Sequence[Row], minutes: int) -> list[dict[str, Any]]:
    """The present of the partitions that have a line, as further rows of the query."""
    newest: dict[tuple[Any, ...], datetime] = {}
    for row in rows:
        newest[row["topic"], row["broker"], row["partition"]] = row["time_last"]
    found: list[dict[str, Any]] = []
    for row in view.ask("partitions", cluster=group["cluster"], group_id=group["group_id"]):
        topic = row["topic"].partition("@")[0]  # (partitions.sql names RocketMQ's with their brokers)
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


def _of_hours(view: View, group: Row, span: Range) -> _Found | None:
    hours = hours_of(span.length)
    width = timedelta(hours=hours)
    day = timedelta(days=1)
    begin = floor(span.begin, min(width, day))
    steps = Steps(begin, width, max(1, -(-(span.end - begin) // width)))
    given = {
        "cluster": group["cluster"],
        "group_id": group["group_id"],
        "since": begin,
        "until": span.end.replace(second=0, microsecond=0),
    }
    within_day = min(hours, 24)
    rows = view.archive.ask("lag_map_hours", **given, hours=within_day, most=_MOST)
    by_hour = span.length <= _BY_HOUR
    observed = view.archive.ask("group_hours" if by_hour else "group_days", **given)
    if rows is None or observed is None:
        return None
    columns = set()
    for row in observed:
        if by_hour:
            columns.add(steps.at(row["hour"]))
        else:
            midnight = datetime(row["event_date"].year, row["event_date"].month, row["event_date"].day, tzinfo=UTC)
            columns.update(steps.at(midnight + part * width) for part in range(-(-day // width)))
    lines = lines_of_hours(rows, steps, within_day, columns)
    return _Found(lines, steps, rows[0]["of_all"] if rows else 0, rows[0]["rest_lag_max"] if rows else None)


def _told(line: HeatRow, steps: Steps, by: str, view: View) -> dict[str, Any]:
    known = [(value, column) for column, value in enumerate(line.values) if value is not None]
    highest, column = max(known, key=lambda found: (found[0], found[1]), default=(None, 0))
    return {
        "name": line.name,
        "highest": valued(highest, by),
        "when": view.clock.time(steps.begin + column * steps.width, exact=False) if highest else "",
        "last": valued(line.values[-1] if line.values else None, by),
        "unknown": f"{round(100 * (1 - len(known) / len(line.values)))} %" if len(known) < len(line.values) else "",
    }


BOARD = Board(
    path=("groups", "{group}", "lag"),
    template="lag_map.html.j2",
    fill=_fill,
    title="Lag of {group} by partition · Evenkeel",
    parameters=frozenset({"range", "from", "to", "by"}),
)
