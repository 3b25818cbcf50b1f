"""The alerts that fire now, as other boards show them."""

from __future__ import annotations

from typing import Any, Final

from dashboards.boards.parts.notes import muted_rows
from dashboards.page.board import View

__all__ = ["firing"]

# Enough to see the gravest; the groups below show the rest.
_MOST = 5

_SEVERITIES: Final = {"critical": 3, "warning": 2}


def firing(view: View, cluster: str | None, group: str | None) -> dict[str, Any]:
    """Values of the macro `firing`: the gravest alerts of one group or of all."""
    rows = view.ask("alerts", cluster=cluster, group_id=group)
    muted = muted_rows(rows[:_MOST], view)
    return {
        "number": len(rows),
        "with_group": group is None,
        "rows": [
            {
                "key": row["alert_id"],
                "health": _SEVERITIES.get(row["severity"], 1),
                "severity": row["severity"] or "",
                "group": row["group_id"],
                "href": view.address.link("groups", row["group_id"], cluster=row["cluster"]) if row["group_id"] else "",
                "message": row["message"] or row["rule"] or "",
                "since": view.clock.time(row["since"], exact=False),
                "muted": muted.get(row["alert_id"], ""),
            }
            for row in rows[:_MOST]
        ],
    }
