"""Rows of decisions for both views: when, why, at what cost, with which verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards import format as words

__all__ = ["rebalance_rows"]

Row = Mapping[str, Any]

_SIGNS = {
    "drifted": ("✕ drifted", "bad"),
    "identical": ("identical", ""),
    "unverified": ("not recomputed", "quiet"),
}


def rebalance_rows(decisions: Sequence[Row], clock: words.Clock) -> list[dict[str, Any]]:
    """Values of the template `rebalances.html.j2`."""
    return [_row(decision, clock) for decision in decisions]


def _row(row: Row, clock: words.Clock) -> dict[str, Any]:
    verdict, style = _SIGNS.get(row["verdict"], (words.DASH, "quiet"))
    if row["verdict"] is None and row["kind"] != "static_replacement":
        # (A static member that comes back under another id keeps its partitions: nothing is decided, so no verdict
        # follows.)
        verdict, style = "pending", "quiet"
    moves, least = row["partitions_moved"], row["partitions_moved_optimal"]
    return {
        "key": f"{row['cluster']}/{words.key_of(row['group_id'])}/{row['decision']}",
        "cluster": row["cluster"],
        "group": row["group_id"],
        "time": clock.time(row["record_time"]),
        "whole": clock.whole(row["record_time"]),
        "cause": words.cause(row),
        "who": _who(row),
        "generation": row["generation"],
        "members": row["members"],
        "partitions_moved": moves,
        "least": least,
        "wasteful": moves is not None and least is not None and moves > least,
        "unassigned": _unassigned(row["unassigned_partition_seconds_min"], row["unassigned_partition_seconds_max"]),
        "verdict": verdict,
        "verdict_class": style,
    }


def _unassigned(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return words.DASH
    if high is None:
        return f"{words.seconds(low)} or more"
    if low is None:
        return f"up to {words.seconds(high)}"
    return words.seconds(high) if low == high else f"{words.seconds(low)} to {words.seconds(high)}"


def _who(row: Row) -> str:
    lines = [f"joined: {words.visible(name)}" for name in row["joined"] or ()]
    lines += [f"left: {words.visible(name)}" for name in row["left"] or ()]
    lines += [f"replaced: {words.visible(item['group_instance_id'] or '')}" for item in row["replaced"] or ()]
    return "\n".join(lines[:20])
