"""What rebalances cost, group by group, over a time and beside the time before; and advice on what could be changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from dashboards import format as words
from dashboards.charts import moment_of
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, by_group, total
from dashboards.spans import DAY, HOUR, RANGES, Range

_SHOWN: Final = 100

_CAUSES: Final[Mapping[str, str]] = {
    "migration": "the group changed its protocol",
    "member_joined": "who was not there before",
    "member_left": "by a request, no timeout",
    "member_silent": "no commits though records waited, then gone",
    "member_gone": "left, or the session expired",
    "static_replacement": "a static member came back under another id",
    "subscription_changed": "other topics subscribed",
    "partitions_changed": "another number of a topic's partitions",
    "strategy_changed": "the group runs another strategy",
    "settings_changed": "the assignor's settings changed",
    "handover": "second half of a cooperative rebalance",
    "rejoined": "the same members joined again",
    "coordinator_moved": "the group's coordinator was elected again",
    "broker_down": "a broker went down",
    "broker_up": "a broker came up",
    "unknown": "not known",
    "eager": "everything stops",
    "cooperative": "what stays goes on",
    "consumer": "KIP-848: the broker assigns",
}

_SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "rebalances": ("rebalances", True),
    "unassigned": ("unassigned_partition_seconds_min", True),
    "moves": ("partitions_moved", True),
    "avoidable": ("moves_avoidable", True),
    "stopped": ("partitions_stopped_unmoved", True),
    "group": ("group_id", False),
}
"""Column, and whether the largest comes first, by the value of `sort`."""

_KINDS: Final = (
    "static_membership",
    "cooperative",
    "strategy",
    "too_many_members",
    "hot_partition",
    "declare_clients",
    "abandoned",
)


def source_of(span: Range) -> tuple[str, Range]:
    """Where the figures of a time come from: the end of the queries' names, and the time with the bounds of the source.

    Decisions one by one ("") for a day, roll-ups by hour for a month, and by day for more.
    """
    if span.length <= RANGES["24h"]:
        return "", span
    if span.length > RANGES["30d"]:
        return ("_days", span.whole(DAY))
    return ("_hours", span.whole(HOUR))


def _rows(view: View, query: str, source: str, span: Range) -> Sequence[Row]:
    if source:
        return view.rows(f"{query}{source}", since=span.begin, until=span.end)
    return view.rows(query, span)


def summed(rows: Sequence[Row]) -> Row:
    """Sums of the columns of cost.sql; where an upper bound is not known of one row, it is not known of all."""
    found = {column: total(rows, column) if rows else 0 for column in _COLUMNS}
    unknown = [column for column in _COLUMNS if column.endswith("_max") and any(row[column] is None for row in rows)]
    return found | dict.fromkeys(unknown)


def stopped(row: Row) -> str:
    """How many partitions were stopped for nothing by a row of cost.sql, and of how many rebalances nobody knows."""
    known, unknown = row["partitions_stopped_unmoved"], row["stopped_unknown"]
    if not unknown:
        return words.number(known)
    of = f"not known of {words.counted(unknown, 'rebalance')}"
    if known is not None:
        return f"{words.number(known)}, {of}"
    return of


_COLUMNS: Final = (
    "rebalances", "unassigned_partition_seconds_min", "unassigned_partition_seconds_max", "partitions_moved",
    "moves_avoidable", "partitions_stopped_unmoved", "stopped_unknown",
)  # fmt: skip


def _reach(source: str, rows: Sequence[Row]) -> datetime | None:
    """Up to when roll-ups have figures; None where they are not asked, or have none."""
    newest = max((row["newest"] for row in rows), default=None) if source else None
    step = HOUR if source == "_hours" else DAY
    if newest is None:
        return None
    return moment_of(newest) + step


def _cost(view: View) -> Mapping[str, Any]:
    source, span = source_of(view.span)
    everyone, causes = _rows(view, "cost", source, span), _rows(view, "cost_causes", source, span)
    rows = view.owned(everyone)
    before: Sequence[Row] = ()
    causes_before: Sequence[Row] = ()
    if view.compared:
        before = view.owned(_rows(view, "cost", source, span.before))
        causes_before = _rows(view, "cost_causes", source, span.before)
    # Roll-ups without a row: nothing was decided, or they are not written yet.
    known = bool(rows) or not (source or view.unread)
    return {
        "owners": view.owner_chips({row["group_id"] for row in everyone}),
        "known": known,
        "source": {"": "", "_hours": "by hour", "_days": "by day"}[source],
        "reach": _reach(source, rows),
        "sums": summed(rows) if known else None,
        # Without a row it is not known whether nothing happened, or nothing was kept.
        "before": summed(before) if before else None,
        "stopped": stopped,
        "causes": causes,
        "causes_before": {(row["kind"], row["name"]): row["rebalances"] for row in causes_before},
        "meant": _CAUSES,
        "groups": view.ordered(rows, _SORTS)[: view.most],
        "earlier": by_group(before),
        "number": len(rows),
    }


def saving(row: Row) -> str:
    """What following an advice would have saved, in a sentence."""
    days = words.counted(row["period_days"], "day")
    if row["saved"] is None:
        return f"How much it would have saved in {days} is unknown."
    amount = f"{row['saved']:,.0f}" if row["saved"] >= 100 else f"{row['saved']:,g}"
    return f"It would have saved {amount} {row['unit'] or ''}".rstrip() + f" in {days}."


def _advice(view: View) -> Mapping[str, Any]:
    found = view.rows("advice")
    kind, text = view.address.text("kind"), view.address.text("group").strip().lower()
    if kind not in {row["kind"] for row in found}:
        kind = view.address.one_of("kind", _KINDS)
    named = [row for row in found if text in row["group_id"].lower()]
    owned = view.owned(named)
    shown = [row for row in owned if not kind or row["kind"] == kind]
    kinds = Counter(row["kind"] for row in owned)
    return {
        "kinds": view.chips("kind", sorted(kinds), kinds),
        "says": {name: name.replace("_", " ") for name in _KINDS},
        "owners": view.owner_chips(row["group_id"] for row in named),
        "number": len(shown),
        "of": len(found),
        "rows": shown[:_SHOWN],
        "saving": saving,
        "days": view.rows("advice_days"),
    }


COST = Board(
    path=("cost",),
    template="cost.html.j2",
    fill=_cost,
    title="Cost of rebalances · Evenkeel",
    word="Cost",
    parameters=TIMES | {"compare", "sort", "most", "owner"},
    span="24h",
)

ADVICE = Board(
    path=("advice",),
    template="advice.html.j2",
    fill=_advice,
    title="Advice · Evenkeel",
    word="Advice",
    parameters=frozenset({"kind", "owner", "group"}),
)
