"""Decisions of all groups over a time: when, why, at what cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.address import RANGES
from dashboards.boards.board import Board, Row, View
from dashboards.boards.chips import cluster_chips, owner_chips
from dashboards.boards.decisions import decision_rows
from dashboards.boards.past import decisions_within, left_out, ranges
from dashboards.boards.plots import rebalance_plot

__all__ = ["BOARD"]

_SHOWN: Final = 100


def _fill(view: View) -> Mapping[str, Any]:
    span = view.address.range(view.now, default="24h")
    verdict = view.address.one_of("verdict", ("drifted", "identical", "unverified", "not_applicable", "pending"))
    found = decisions_within(view, span, view.cluster, None)
    compared = view.address.one_of("compare", ("before",)) == "before"
    before = decisions_within(view, span.before, view.cluster, None) if compared else None
    owner = view.address.text("owner")
    owners = owner_chips(view, {row["group_id"] for row in found or ()})
    if owner:
        found = None if found is None else [row for row in found if view.owner(row["group_id"]) == owner]
        before = None if before is None else [row for row in before if view.owner(row["group_id"]) == owner]
    shown = [row for row in found or () if not verdict or (row["verdict"] or "pending") == verdict]
    return {
        "ranges": ranges(view, span, RANGES),
        "owners": owners,
        "reading": found is None or (compared and before is None),
        "left_out": left_out(view, span, view.cluster, None)
        or (left_out(view, span.before, view.cluster, None) if compared else ""),
        "sums": _sums(found or (), before),
        "compare": view.address.here(compare=None if compared else "before"),
        "compared": compared,
        "verdicts": [
            {
                "word": word.replace("_", " "),
                "n": n,
                "chosen": word == verdict,
                "href": view.address.here(verdict=None if word == verdict else word),
            }
            for word, n in sorted(Counter(row["verdict"] or "pending" for row in found or ()).items())
        ],
        "clusters": cluster_chips(view),
        "plot": rebalance_plot(shown, span),
        "decisions": decision_rows(shown[:_SHOWN], view, with_group=True),
        "hidden": max(0, len(shown) - _SHOWN),
    }


def _sums(rows: Sequence[Row], before: Sequence[Row] | None) -> list[dict[str, Any]]:
    """A few figures of a time, beside those of the time before."""
    return [
        {
            "word": word,
            "value": words.number(sum_of(rows)),
            "before": words.number(sum_of(before)) if before is not None else "",
        }
        for word, sum_of in (
            ("decisions", len),
            ("rebalances", lambda found: sum(row["kind"] == "rebalance" for row in found)),
            ("drifted", lambda found: sum(row["verdict"] == "drifted" for row in found)),
            ("partitions moved", lambda found: sum(row["partitions_moved"] or 0 for row in found)),
            ("more than needed", lambda found: sum(map(_avoidable, found))),
        )
    ]


def _avoidable(row: Row) -> int:
    moves, least = row["partitions_moved"], row["partitions_moved_optimal"]
    return max(0, moves - least) if moves is not None and least is not None else 0


BOARD = Board(
    path=("rebalances",),
    template="rebalances.html.j2",
    fill=_fill,
    title="Rebalances · Evenkeel",
    word="Rebalances",
    parameters=frozenset({"range", "from", "to", "verdict", "compare", "owner"}),
)
