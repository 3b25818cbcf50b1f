"""What people left: mutes of alerts beside what they mute, and marks, which every chart with an axis of time draws.

A board whose address has a range gets the marks of that time below its content (`marks.html.j2`); `charts.js` draws
them from there, so that no chart need know of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dashboards.boards.parts.past import whole_minutes
from dashboards.format import Row
from dashboards.page.board import View
from streaming.notes import Mute, muting
from streaming.terminal import age

__all__ = ["marks", "mute_of", "muted_rows", "mutes"]

# More lines in one chart hide what they are to explain.
_MOST_MARKS: Final = 50


def marks(view: View) -> list[dict[str, Any]]:
    """Marks of the time that a board shows, the oldest first: of the group that its address names, or of all."""
    path = view.address.path
    group = path[1] if len(path) > 1 and path[0] == "groups" else None
    span = whole_minutes(view.address.range(view.now))
    rows = view.ask("marks", cluster=view.cluster, group_id=group, since=span.begin, until=span.end, most=_MOST_MARKS)
    return [
        {
            "key": row["mark_id"] or "",
            "at": int(row["mark_time"].timestamp()),
            "time": view.clock.time(row["mark_time"]),
            "text": row["text"] or "",
            "group": row["group_id"] or "",
            "by": row["made_by"] or "",
        }
        for row in reversed(rows)
    ]


def mutes(view: View, rule: str | None = None) -> list[dict[str, Any]]:
    """Mutes that hold now, the next to end first; of one rule those that name it."""
    rows = [row for row in _holding(view) if rule is None or (row["kind"], row["name"]) == ("rule", rule)]
    return [
        {
            "key": row["mute_id"] or "",
            "cluster": row["cluster"],
            "what": f"{row['kind']} {row['name']}",
            "href": _href(row, view),
            "until": view.clock.time(row["until_time"]),
            "left": age(row["until_time"] - view.now),
            "by": row["made_by"] or "",
            "reason": row["reason"] or "",
        }
        for row in rows
    ]


def muted_rows(rows: Sequence[Row], view: View) -> Mapping[str, str]:
    """By `alert_id`, why nobody is sent an alert now: of rows with cluster, rule and group_id."""
    held = [_mute(row) for row in _holding(view)]
    found = {}
    for row in rows if held else ():
        holding = mute_of(held, view, row)
        if holding is not None:
            mute, until = holding
            left = age(timedelta(milliseconds=until - _ms(view)))
            found[row["alert_id"]] = f"muted for {left} more: {mute.reason} ({mute.made_by})"
    return found


def mute_of(held: Sequence[Mute], view: View, row: Row) -> tuple[Mute, int] | None:
    """The mute that holds back an alert, and until when, ms; None where there is none."""
    group = row["group_id"]
    owner = view.owner(group) or None if group is not None else None
    of_cluster = [one for one in held if one.cluster == row["cluster"]]
    return muting(of_cluster, _ms(view), row["rule"] or "", row["severity"] or "", group, owner)


def _holding(view: View) -> list[Row]:
    rows = view.ask("mutes", cluster=view.cluster, since=view.since)
    holding: list[Row] = []
    for row in rows:
        until = None if row["from_time"] is None else _mute(row).holds_until(_ms(view))
        if until is not None:
            holding.append({**row, "until_time": datetime.fromtimestamp(until / 1000, UTC)})
    return holding


def _mute(row: Row) -> Mute:
    return Mute(
        row["mute_id"] or "",
        row["cluster"],
        row["kind"] or "",
        row["name"] or "",
        row["reason"] or "",
        row["made_by"] or "",
        round(row["from_time"].timestamp() * 1000),
        round(row["until_time"].timestamp() * 1000),
        row["repeat_ms"],
    )


def _href(row: Row, view: View) -> str:
    if row["kind"] == "rule" and row["name"]:
        return view.address.link("alerts", row["name"], cluster=row["cluster"])
    is_pattern = (row["name"] or "").startswith("/")
    if row["kind"] == "group" and row["name"] and not is_pattern:
        return view.address.link("groups", row["name"], cluster=row["cluster"])
    return ""


def _ms(view: View) -> int:
    return round(view.now.timestamp() * 1000)
