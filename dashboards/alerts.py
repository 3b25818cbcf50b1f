"""The current alerts, as both views show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboards.html import render
from dashboards.view import HEALTH, View

__all__ = ["alerts_html"]

# Enough to see the gravest; the groups below show the rest.
_MOST = 5
_SEVERITIES = {"critical": 3, "warning": 2}


def alerts_html(view: View, group: str | None = None) -> str:
    """The alerts of one group or of all; empty when none fires."""
    rows = view.ask("alerts", cluster=view.cluster, group_id=group)
    return render(
        "alerts.html.j2",
        alerts=[_alert(row, view) for row in rows[:_MOST]],
        number=len(rows),
        with_group=group is None,
        health_words=HEALTH,
    )


def _alert(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    return {
        "key": row["alert_id"],
        "health": _SEVERITIES.get(row["severity"], 1),
        "severity": row["severity"] or "",
        "cluster": row["cluster"],
        "group": row["group_id"],
        "message": row["message"] or row["rule"] or "",
        "since": view.clock.time(row["since"], exact=False),
        "whole": view.clock.whole(row["since"]),
    }
