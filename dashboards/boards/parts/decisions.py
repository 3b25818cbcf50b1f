"""Rows of decisions, as several boards show them: when, why, at what cost, with which verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row
from dashboards.page.board import View

__all__ = ["decision_rows", "unassigned"]

_SIGNS: Final = {
    "drifted": ("✕ drifted", "bad"),
    "identical": ("identical", ""),
    "unverified": ("not recomputed", "quiet"),
    "not_applicable": ("not applicable", "quiet"),
}

# Names in a title; more than this nobody reads there.
_MOST_NAMES = 20


def decision_rows(decisions: Sequence[Row], view: View, *, with_group: bool) -> dict[str, Any]:
    """Values of the macro `decisions`, from rows of rebalances.sql."""
    return {"with_group": with_group, "rows": [_row(decision, view) for decision in decisions]}


def _row(row: Row, view: View) -> dict[str, Any]:
    verdict, style = _SIGNS.get(row["verdict"], (words.DASH, "quiet"))
    if row["verdict"] is None and row["kind"] != "static_replacement":
        # (A static member that comes back under another id keeps its partitions: nothing is decided, so no verdict
        # follows.)
        verdict, style = "pending", "quiet"
    moves, least = row["partitions_moved"], row["partitions_moved_optimal"]
    cluster = row["cluster"]
    return {
        "key": f"{cluster}/{words.key_of(row['group_id'])}/{row['decision']}",
        "href": view.address.link("groups", row["group_id"], "decisions", str(row["decision"]), cluster=cluster),
        "group": row["group_id"],
        "group_href": view.address.link("groups", row["group_id"], cluster=cluster),
        "time": view.clock.time(row["record_time"]),
        "cause": words.cause(row),
        "who": _who(row),
        "generation": row["generation"],
        "members": row["members"],
        "moves": moves,
        "least": least,
        "wasteful": moves is not None and least is not None and moves > least,
        "unassigned": unassigned(row),
        "verdict": verdict,
        "verdict_class": style,
    }


def unassigned(row: Row) -> str:
    """The time that partitions had no owner, as bounds."""
    return words.between(
        row["unassigned_partition_seconds_min"], row["unassigned_partition_seconds_max"], words.seconds
    )


def _who(row: Row) -> str:
    lines = [f"joined: {words.cut(name, 200)}" for name in (row["joined"] or ())[:_MOST_NAMES]]
    lines += [f"left: {words.cut(name, 200)}" for name in (row["left"] or ())[:_MOST_NAMES]]
    lines += [
        f"replaced: {words.cut(item['group_instance_id'] or '', 200)}" for item in (row["replaced"] or ())[:_MOST_NAMES]
    ]
    return "\n".join(lines[:_MOST_NAMES])
