"""Rows of alerts and of their deliveries as the boards of alerts show them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Clock, Row
from dashboards.page.board import View
from streaming.terminal import age

__all__ = ["attempts", "history", "lasted", "owed", "severity_of", "states", "targets"]

_SEVERITIES: Final[Mapping[str, int]] = {"critical": 3, "warning": 2}

_OUTCOMES: Final[Mapping[str, tuple[str, str]]] = {
    "delivered": ("delivered", ""),
    "failed": ("failed, will be tried again", "warn"),
    "given_up": ("given up", "bad"),
    "skipped": ("not sent", "quiet"),
    "held": ("held back", "quiet"),
}
"""Words and style by the column `outcome`."""


def severity_of(row: Row) -> int:
    """The sign for a row's severity, as the numbers of `HEALTH`."""
    return _SEVERITIES.get(row["severity"] or "", 1)


def states(rows: Sequence[Row], view: View, muted: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Rows of alert_states.sql for their table.

    Args:
        rows: The rows.
        view: The rendering.
        muted: By `alert_id`, why nobody is sent it now.
    """
    why = muted or {}
    return [
        {
            **_head(row, view),
            "state": row["state"] or "",
            "since": view.clock.time(row["since"]),
            "for": _ago(view.now, row["since"]),
            "labels": ", ".join(f"{label['name']}={label['value']}" for label in row["labels"] or ()),
            "muted": why.get(row["alert_id"], ""),
        }
        for row in rows
    ]


def history(rows: Sequence[Row], firing: frozenset[str], view: View) -> list[dict[str, Any]]:
    """Rows of alert_history.sql for their table.

    Args:
        rows: The rows.
        firing: Ids of the alerts that fire now.
        view: The rendering.
    """
    return [
        {
            **_head(row, view),
            "since": view.clock.time(row["since"]),
            "fired": view.clock.time(row["fired_time"]) if row["fired_time"] else "before",
            "ended": view.clock.time(row["ended_time"]) if row["ended_time"] else "",
            "outcome": row["outcome"] or ("still firing" if row["alert_id"] in firing else "not in this time"),
            "lasted": lasted(row),
            "late": bool(row["late"]),
        }
        for row in rows
    ]


def lasted(row: Row) -> str:
    """For how long an alert was true, from its first round to its end; "" while it has no end."""
    if row["since"] is None or row["ended_time"] is None:
        return ""
    # (The ends of two rounds by a broker's clock, which may have been set back.)
    return age(max(timedelta(0), row["ended_time"] - row["since"]))


def targets(rows: Sequence[Row], clock: Clock) -> list[dict[str, Any]]:
    """Rows of targets.sql for their table; those that refuse messages first."""
    ordered = sorted(rows, key=lambda row: (-row["failed"], -row["given_up"], row["target"], row["cluster"]))
    return [
        {
            "cluster": row["cluster"],
            "name": row["target"] or "",
            "added": clock.time(row["added_time"]),
            "delivered": row["delivered"],
            "last": clock.time(row["delivered_time"]),
            "failed": row["failed"],
            "given_up": row["given_up"],
            "skipped": row["skipped"],
            "held": row["held"],
            "refused": clock.time(row["refused_time"]),
        }
        for row in ordered
    ]


def owed(rows: Sequence[Row], view: View) -> list[dict[str, Any]]:
    """Rows of owed.sql for their table."""
    return [
        {
            **_head(row, view),
            "target": row["target"] or "",
            "state": row["state"] or "",
            "decided": view.clock.time(row["decided_time"]),
            "attempt": row["attempt"],
            "reason": row["reason"] or ("no attempt yet" if row["attempt"] is None else ""),
        }
        for row in rows
    ]


def attempts(rows: Sequence[Row], view: View) -> list[dict[str, Any]]:
    """Rows of deliveries.sql for their table."""
    made = []
    for row in rows:
        outcome, style = _OUTCOMES.get(row["outcome"] or "", (row["outcome"] or "", ""))
        made.append(
            {
                **_head(row, view),
                "key": f"{row['transition_id']}/{row['target']}/{row['attempt']}/{row['outcome']}",
                "time": view.clock.time(row["attempt_time"]),
                "target": row["target"] or "",
                "state": _sent(row),
                "outcome": outcome,
                "style": style,
                "attempt": row["attempt"],
                "took": words.DASH if row["duration_ms"] is None else f"{row['duration_ms'] / 1000:.1f} s",
                "reason": row["reason"] or "",
            }
        )
    return made


def _sent(row: Row) -> str:
    """The state that was reported, and whether it was reported again or together with other alerts."""
    again = f", repetition {row['repeat']}" if row["repeat"] is not None else ""
    shared = ", with others" if row["incident"] not in {None, row["alert_id"]} else ""
    return f"{row['state'] or ''}{again}{shared}"


def _head(row: Row, view: View) -> dict[str, Any]:
    """What an alert is about."""
    group, rule = row["group_id"], row["rule"] or ""
    return {
        "key": row.get("alert_id") or "",
        "health": severity_of(row),
        "severity": row["severity"] or "",
        "rule": rule,
        "rule_href": view.address.link("alerts", rule) if rule else "",
        "cluster": row["cluster"],
        "group": group or "",
        "href": view.address.link("groups", group, cluster=row["cluster"]) if group else "",
        "topic": _place(row),
        "message": row["message"] or "",
    }


def _place(row: Row) -> str:
    """Topic and partition of an alert, with the broker where each broker numbers its own (RocketMQ); "" for neither."""
    topic = row.get("topic")
    if topic is None:
        return ""
    # (Only the key has the broker, and only some of the queries have the key. One that is no JSON object is of
    # no release, and must not take the board away.)
    try:
        entity = json.loads(row.get("entity") or "{}")
    except ValueError:
        entity = {}
    broker = entity.get("broker") if isinstance(entity, dict) else None
    known = "/".join(str(part) for part in (broker, row["partition"]) if part is not None)
    return f"{topic} {known}" if known else str(topic)


def _ago(now: datetime, moment: datetime | None) -> str:
    return words.DASH if moment is None else age(max(timedelta(0), now - moment))
