"""Decisions of a time: when, why, at what cost; a stem each while they can be told apart, sums by step when many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboards import format as words
from dashboards.charts import rebalance_plot, step_plot
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View
from dashboards.spans import DAY, HOUR, Range, steps_of

_SHOWN: Final = 100

# More decisions in a span are left out of lists, the oldest first; a month of a cluster that works has fewer.
_MOST: Final = 5_000

# More stems than this lie over each other on any screen; and each costs a page some 25 bytes.
_MOST_STEMS: Final = 500

_VERDICTS: Final = ("drifted", "identical", "unverified", "not_applicable", "pending")


@dataclass(frozen=True, slots=True)
class SpanDecisions:
    """The decisions of a span.

    Attributes:
        groups: Ids of all groups that decided, of all owners.
        rows: Rows of rebalances.sql, the newest first; if there are too many, only the newest.
        steps: Rows of rebalance_steps.sql over all decisions; None where `rows` are few.
        left_out: A sentence where `rows` are not all; "" otherwise.
    """

    groups: frozenset[str]
    rows: Sequence[Row]
    steps: Sequence[Row] | None
    left_out: str

    @property
    def sums(self) -> Sequence[Row]:
        """Rows with decisions, rebalances, partitions_moved and moves_avoidable by verdict, of all decisions."""
        if self.steps is None:
            return self.rows
        return self.steps


def decided(view: View, span: Range, **group: str | None) -> SpanDecisions:
    """The decisions of a span, of the chosen cluster and owner or of one group; none while they are being read."""
    # The query has no end: the newest since the beginning, also those after the span.
    read = view.rows("rebalances", span, most=_MOST, **group)
    within = [row for row in read if span.begin <= row["record_time"] <= span.end]
    groups = frozenset(row["group_id"] for row in within)
    rows = view.owned(within)
    left_out = ""
    if len(read) >= _MOST:
        oldest = words.time(read[-1]["record_time"])
        left_out = (
            f"Only the newest {_MOST:,} decisions are in the list, none before {oldest}; chart and sums have all."
        )
    if not left_out and len(within) <= _MOST_STEMS:
        return SpanDecisions(groups, rows, None, "")
    width = steps_of(span.begin, span.end).width
    step = "minute" if width < HOUR else "hour" if width < DAY else "day"
    # Who owns a group is in no table, so sums of one owner need those of each group.
    each = "yes" if view.address.text("owner") else "no"
    steps = view.rows("rebalance_steps", span, step=step, each=each, **group)
    return SpanDecisions(groups, rows, view.owned(steps), left_out)


def timeline(found: SpanDecisions, span: Range, verdict: str = "") -> dict[str, Any]:
    """The chart of decisions; only of those with a verdict, or "pending", where it is given."""
    rows = _of_verdict(found.sums, verdict)
    if found.steps is None:
        return rebalance_plot(rows, span)
    return step_plot(rows, steps_of(span.begin, span.end), span)


def _of_verdict(rows: Sequence[Row], verdict: str) -> list[Row]:
    return [row for row in rows if not verdict or (row["verdict"] or "pending") == verdict]


def _fill(view: View) -> Mapping[str, Any]:
    verdict = view.address.one_of("verdict", _VERDICTS)
    found = decided(view, view.span)
    counts: Counter[str] = Counter()
    for row in found.sums:
        counts[row["verdict"] or "pending"] += row["decisions"]
    shown = _of_verdict(found.rows, verdict)
    return {
        "owners": view.owner_chips(found.groups),
        "left_out": found.left_out,
        "sums": _figures(found),
        "before": _figures(decided(view, view.span.before)) if view.compared else None,
        "verdicts": view.chips("verdict", sorted(counts), counts),
        "plot": timeline(found, view.span, verdict),
        "decisions": shown[:_SHOWN],
        "hidden": len(shown) - _SHOWN,
    }


def _figures(found: SpanDecisions) -> dict[str, int]:
    rows = found.sums
    return {
        "decisions": sum(row["decisions"] for row in rows),
        "rebalances": sum(row["rebalances"] for row in rows),
        "drifted": sum(row["decisions"] for row in rows if row["verdict"] == "drifted"),
        "partitions moved": sum(row["partitions_moved"] or 0 for row in rows),
        "more than needed": sum(row["moves_avoidable"] or 0 for row in rows),
    }


BOARD = Board(
    path=("rebalances",),
    template="rebalances.html.j2",
    fill=_fill,
    title="Rebalances · Evenkeel",
    word="Rebalances",
    parameters=TIMES | {"verdict", "compare", "owner"},
    span="24h",
)
