"""Decisions over time: a stem each while they can be distinguished, sums by step when they are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from dashboards.boards.parts.past import decisions_within, left_out, within
from dashboards.charts.plots import rebalance_plot, step_plot
from dashboards.charts.steps import steps_of
from dashboards.format import Row
from dashboards.page.board import View
from dashboards.spans import Range

__all__ = ["SpanDecisions", "decided", "of_owner", "of_verdict", "timeline"]

# More stems than this lie over each other on any screen; and each costs a page some 25 bytes.
_MOST_STEMS: Final = 500

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SpanDecisions:
    """The decisions of a span.

    Attributes:
        rows: Rows of rebalances.sql, the newest first; of very many only the newest.
        steps: Rows of rebalance_steps.sql, of all of them; None where `rows` are few.
        left_out: A sentence where `rows` are not all; "" otherwise.
    """

    rows: Sequence[Row]
    steps: Sequence[Row] | None
    left_out: str


def decided(view: View, span: Range, cluster: str | None, group: str | None) -> SpanDecisions | None:
    """The decisions of a span, of one cluster or group or of all; None while they are still being read."""
    rows = decisions_within(view, span, cluster, group)
    if rows is None:
        return None
    more = left_out(view, span, cluster, group)
    if not more and len(rows) <= _MOST_STEMS:
        return SpanDecisions(rows, None, "")
    width = steps_of(span.begin, span.end).width
    step = "minute" if width < _HOUR else "hour" if width < _DAY else "day"
    # (Who owns a group is in no table, so sums of one owner need those of each group.)
    each = "yes" if view.address.text("owner") else "no"
    steps = within(view, span, "rebalance_steps", cluster=cluster, group_id=group, step=step, each=each)
    return None if steps is None else SpanDecisions(rows, steps, more)


def of_owner(found: SpanDecisions | None, view: View, owner: str) -> SpanDecisions | None:
    """The decisions of an owner's groups; the address must name the owner."""
    if found is None:
        return None

    def owned(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if view.owner(row["group_id"]) == owner]

    return SpanDecisions(owned(found.rows), None if found.steps is None else owned(found.steps), found.left_out)


def timeline(found: SpanDecisions | None, span: Range, verdict: str = "") -> dict[str, Any]:
    """The chart of decisions.

    Args:
        found: The decisions; None draws an empty chart.
        span: What is shown.
        verdict: Only those with this verdict, or "pending"; "" shows all.
    """
    if found is None:
        return rebalance_plot((), span)
    if found.steps is None:
        return rebalance_plot(of_verdict(found.rows, verdict), span)
    return step_plot(of_verdict(found.steps, verdict), steps_of(span.begin, span.end), span)


def of_verdict(rows: Sequence[Row], verdict: str) -> list[Row]:
    """The rows with a verdict, or "pending"; all for ""."""
    return [row for row in rows if not verdict or (row["verdict"] or "pending") == verdict]
