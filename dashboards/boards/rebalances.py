"""Decisions of all groups over a time: when, why, at what cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import cluster_chips, owner_chips
from dashboards.boards.parts.decisions import decision_rows
from dashboards.boards.parts.past import ranges
from dashboards.boards.parts.timeline import SpanDecisions, decided, of_owner, of_verdict, timeline
from dashboards.format import Row
from dashboards.page.board import Board, View
from dashboards.spans import RANGES

__all__ = ["BOARD"]

_SHOWN: Final = 100


def _fill(view: View) -> Mapping[str, Any]:
    span = view.address.range(view.now)
    verdict = view.address.one_of("verdict", ("drifted", "identical", "unverified", "not_applicable", "pending"))
    found = decided(view, span, view.cluster, None)
    compared = view.address.one_of("compare", ("before",)) == "before"
    before = decided(view, span.before, view.cluster, None) if compared else None
    owners = owner_chips(view, {row["group_id"] for row in found.rows} if found is not None else ())
    owner = view.address.text("owner")
    if owner:
        found, before = of_owner(found, view, owner), of_owner(before, view, owner)
    shown = of_verdict(found.rows, verdict) if found is not None else []
    plot = timeline(found, span, verdict)
    return {
        "ranges": ranges(view, span, RANGES),
        "owners": owners,
        "reading": found is None or (compared and before is None),
        "left_out": found.left_out if found is not None else "",
        "sums": _sums(found, before),
        "compare": view.address.here(compare=None if compared else "before"),
        "compared": compared,
        "verdicts": [
            {
                "word": word.replace("_", " "),
                "n": n,
                "chosen": word == verdict,
                "href": view.address.here(verdict=None if word == verdict else word),
            }
            for word, n in sorted(_verdicts(found).items())
        ],
        "clusters": cluster_chips(view),
        "plot": plot,
        "decisions": decision_rows(shown[:_SHOWN], view, with_group=True),
        "hidden": max(0, len(shown) - _SHOWN),
    }


def _verdicts(found: SpanDecisions | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    if found is not None:
        for row in found.rows if found.steps is None else found.steps:
            counts[row["verdict"] or "pending"] += 1 if found.steps is None else row["decisions"]
    return counts


def _sums(found: SpanDecisions | None, before: SpanDecisions | None) -> list[dict[str, Any]]:
    """A few figures of a time, beside those of the time before."""
    now, then = _figures(found), None if before is None else _figures(before)
    return [
        {"word": word, "value": words.number(value), "before": words.number(then[word]) if then is not None else ""}
        for word, value in now.items()
    ]


def _figures(found: SpanDecisions | None) -> dict[str, int]:
    if found is not None and found.steps is not None:
        decisions = sum(row["decisions"] for row in found.steps)
        rebalances = sum(row["rebalances"] for row in found.steps)
        drifted = sum(row["decisions"] for row in found.steps if row["verdict"] == "drifted")
        avoidable = sum(row["moves_avoidable"] or 0 for row in found.steps)
        moved = sum(row["partitions_moved"] or 0 for row in found.steps)
    else:
        rows = found.rows if found is not None else ()
        decisions = len(rows)
        rebalances = sum(row["kind"] == "rebalance" for row in rows)
        drifted = sum(row["verdict"] == "drifted" for row in rows)
        avoidable = sum(map(_avoidable, rows))
        moved = sum(row["partitions_moved"] or 0 for row in rows)
    return {
        "decisions": decisions,
        "rebalances": rebalances,
        "drifted": drifted,
        "partitions moved": moved,
        "more than needed": avoidable,
    }


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
    span="24h",
)
