"""What rebalances cost, group by group, over a time and beside the time before; and advice on what could be changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.charts import moment_of
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, by_group, key, total
from dashboards.spans import RANGES, Range

__all__ = ["ADVICE", "COST", "CostSource", "saving", "source_of", "sums"]

_SHOWN: Final = 100

_CAUSES: Final[Mapping[str, str]] = {
    "migration": "the group changed its protocol",
    "member_joined": "who was not there before",
    "member_left": "by a request, no timeout",
    "member_silent": "no commits though records waited, then gone",
    "member_gone": "left, or the session expired",
    "static_replacement": "a static member came back under another id",
    "subscription_changed": "other topics subscribed",
    "partitions_changed": "a topic has another partition count",
    "metadata_stale": "the leader's metadata had been old",
    "racks_changed": "replicas in other racks",
    "strategy_changed": "the group runs another strategy",
    "handover": "second half of a cooperative rebalance",
    "rejoined": "the same members joined again",
    "unfinished_generations": "generations before it left no record",
    "coordinator_moved": "the group's coordinator was elected again",
    "broker_down": "a broker went down",
    "broker_up": "a broker came back",
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
    "delayed": ("records_delayed_min", True),
    "group": ("group_id", False),
}
"""Column, and whether the largest comes first, by the value of `sort`: first those of `_FIGURES`, in their order."""

_KINDS: Final = (
    "static_membership",
    "session_timeout",
    "cooperative",
    "strategy",
    "too_many_members",
    "hot_partition",
    "kip848",
    "declare_clients",
    "abandoned",
)


@dataclass(frozen=True, slots=True)
class CostSource:
    """Where the figures of a time come from.

    Attributes:
        suffix: End of the queries' names: "" for decisions one by one, "_hours" and "_days" for roll-ups.
        span: The time, with the bounds that the roll-ups have.
    """

    suffix: str
    span: Range

    def rows(self, view: View, query: str, span: Range) -> list[dict[str, Any]]:
        """Rows of cost or cost_causes over a span of this source."""
        if self.suffix:
            return view.rows(f"{query}{self.suffix}", since=span.begin, until=span.end)
        return view.rows(query, span)


def source_of(span: Range) -> CostSource:
    """Decisions one by one for a day, roll-ups by hour for a month, and by day for more."""
    if span.length <= RANGES["24h"]:
        return CostSource("", span)
    return (
        CostSource("_days", span.whole_days) if span.length > RANGES["30d"] else CostSource("_hours", span.whole_hours)
    )


def sums(rows: Sequence[Row] | None, before: Sequence[Row] | None) -> list[tuple[str, str, str, str | None]]:
    """The figures of all groups together: word, value, explanation, and the value of the time before.

    Args:
        rows: Rows of cost.sql; None where they are not known.
        before: Those of the time before; None where nobody asks for them.
    """
    return [
        (
            word,
            words.DASH if rows is None else say(_total(rows)),
            title,
            # Without a row it is not known whether nothing happened, or nothing was kept.
            None if before is None else say(_total(before)) if before else words.DASH,
        )
        for word, title, say in _FIGURES
    ]


def _total(rows: Sequence[Row]) -> Row:
    """Sums of the columns of cost.sql; where an upper bound is not known of one row, it is not known of all."""
    found = {column: 0 if not rows else total(rows, column) for column in _COLUMNS}
    unknown = [column for column in _COLUMNS if column.endswith("_max") and any(row[column] is None for row in rows)]
    return found | dict.fromkeys(unknown)


def _stopped(row: Row) -> str:
    known, unknown = row["partitions_stopped_unmoved"], row["stopped_unknown"]
    if not unknown:
        return words.number(known)
    of = f"not known of {words.counted(unknown, 'rebalance')}"
    return f"{words.number(known)}, {of}" if known is not None else of


_COLUMNS: Final = (
    "rebalances", "unassigned_partition_seconds_min", "unassigned_partition_seconds_max", "partitions_moved",
    "moves_avoidable", "partitions_stopped_unmoved", "stopped_unknown", "records_delayed_min", "records_delayed_max",
)  # fmt: skip

_FIGURES: Final[Sequence[tuple[str, str, Callable[[Row], str]]]] = (
    ("rebalances", "decisions that gave partitions out", lambda row: words.number(row["rebalances"])),
    (
        "unassigned, partition-s",
        "time that partitions had no owner, summed over partitions, as bounds, and about how long where they agree",
        lambda row: words.between(
            row["unassigned_partition_seconds_min"], row["unassigned_partition_seconds_max"], words.seconds
        ),
    ),
    ("partitions moved", "from one owner to another", lambda row: words.number(row["partitions_moved"])),
    (
        "more than needed",
        "moves beyond the fewest that could have balanced the group",
        lambda row: words.number(row["moves_avoidable"]),
    ),
    (
        "stopped, not moved",
        "partitions that nobody read during an eager rebalance although they kept their owner",
        _stopped,
    ),
    (
        "records delayed",
        "records that arrived while their partition had no owner, as bounds",
        lambda row: words.between(row["records_delayed_min"], row["records_delayed_max"], words.number),
    ),
)
"""Word, explanation, and how to say it of a row with the columns of cost.sql."""


def _causes(rows: Sequence[Row], before: Sequence[Row] | None, kind: str) -> list[tuple[Row, str, str | None]]:
    """Causes or protocols, each with its explanation and the number of the time before."""
    earlier = {row["name"]: row["rebalances"] for row in before or () if row["kind"] == kind}
    return [
        (
            row,
            _CAUSES.get(row["name"], ""),
            None if before is None else words.number(earlier.get(row["name"], 0)) if before else words.DASH,
        )
        for row in rows
        if row["kind"] == kind
    ]


def _reach(source: CostSource, rows: Sequence[Row]) -> datetime | None:
    """Up to when roll-ups have figures; None where they are not asked, or have none."""
    newest = max((row["newest"] for row in rows), default=None) if source.suffix else None
    if newest is None:
        return None
    return moment_of(newest) + (timedelta(hours=1) if source.suffix == "_hours" else timedelta(days=1))


def _cost(view: View) -> Mapping[str, Any]:
    source = source_of(view.span)
    everyone, causes = source.rows(view, "cost", source.span), source.rows(view, "cost_causes", source.span)
    rows, before, causes_before = view.owned(everyone), None, None
    if view.compared:
        before = view.owned(source.rows(view, "cost", source.span.before))
        causes_before = source.rows(view, "cost_causes", source.span.before)
    # Roll-ups without a row: nothing was decided, or they are not written yet.
    known = bool(rows) or not (source.suffix or view.unread)
    earlier = by_group(before or ())
    return {
        "owners": view.owner_chips({row["group_id"] for row in everyone}),
        "known": known,
        "source": {"": "", "_hours": "by hour", "_days": "by day"}[source.suffix],
        "reach": _reach(source, rows),
        "sums": sums(rows if known else None, before),
        "causes": (
            ("By cause", _causes(causes, causes_before, "cause"), "No rebalance has a known cause."),
            ("By protocol", _causes(causes, causes_before, "protocol"), "Of no rebalance the protocol is known."),
        ),
        "columns": [(*figure, sort) for figure, sort in zip(_FIGURES, _SORTS, strict=False)],
        "groups": [(row, earlier.get(key(row))) for row in view.ordered(rows, _SORTS)[: view.most]],
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
