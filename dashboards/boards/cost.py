"""What rebalances cost, group by group, over a time and beside the time before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import cluster_chips, owner_chips
from dashboards.boards.parts.past import ranges, within
from dashboards.format import Row
from dashboards.page.board import Board, View
from dashboards.spans import RANGES, Range

__all__ = ["BOARD", "CostSource", "by_group", "source_of", "sums"]

_SHOWN: Final = ("50", "1000")

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)

_CAUSES: Final[Mapping[str, str]] = {
    "migration": "the group changed its protocol",
    "member_joined": "who was not there before",
    "member_left": "by a request, no timeout",
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

_SORTS: Final[Mapping[str, str]] = {
    "unassigned": "unassigned_partition_seconds_min",
    "moves": "partitions_moved",
    "avoidable": "moves_avoidable",
    "stopped": "partitions_stopped_unmoved",
    "delayed": "records_delayed_min",
    "rebalances": "rebalances",
    "group": "group_id",
}
"""Column by the value of `sort`."""


@dataclass(frozen=True, slots=True)
class CostSource:
    """Where the figures of a time come from.

    Attributes:
        suffix: End of the queries' names: "" for decisions one by one, "_hours" and "_days" for roll-ups.
        span: The time, with the bounds that the roll-ups have.
        before: The time before it, of the same length.
    """

    suffix: str
    span: Range
    before: Range


def source_of(span: Range) -> CostSource:
    """Decisions one by one for a day, roll-ups by hour for a month, and by day for more."""
    if span.length <= RANGES["24h"]:
        return CostSource("", span, span.before)
    begin = span.begin.replace(minute=0, second=0, microsecond=0)
    end = span.end.replace(minute=0, second=0, microsecond=0) + _HOUR
    suffix = "_hours"
    if span.length > RANGES["30d"]:
        begin, end, suffix = begin.replace(hour=0), end.replace(hour=0) + _DAY, "_days"
    whole = Range(span.name, begin, end)
    return CostSource(suffix, whole, whole.before)


def sums(rows: Sequence[Row] | None, before: Sequence[Row] | None) -> list[dict[str, str]]:
    """The figures of all groups together, beside those of the time before.

    Args:
        rows: Rows of cost.sql; None where they are not known.
        before: Those of the time before; None where nobody asks for them.
    """
    return [
        {
            "word": word,
            "title": title,
            "value": words.DASH if rows is None else said(_total(rows, *columns)),
            # (Without a row it is not known whether nothing happened, or nothing was kept.)
            "before": "" if before is None else said(_total(before, *columns)) if before else words.DASH,
        }
        for word, title, said, columns in _FIGURES
    ]


def by_group(
    rows: Sequence[Row], before: Sequence[Row] | None, sort: str, view: View, most: int
) -> list[dict[str, Any]]:
    """Rows of cost.sql for the table, the costliest first."""
    earlier = {(row["cluster"], row["group_id"]): row for row in before or ()}
    column = _SORTS[sort]
    ordered = sorted(rows, key=lambda row: (row["group_id"], row["cluster"]))
    if sort != "group":
        ordered.sort(key=lambda row: row[column] or 0, reverse=True)
    return [
        _row(row, earlier.get((row["cluster"], row["group_id"])), view, before is not None) for row in ordered[:most]
    ]


def _row(row: Row, before: Row | None, view: View, compared: bool) -> dict[str, Any]:
    return {
        "key": f"{row['cluster']}/{words.key_of(row['group_id'])}",
        "group": row["group_id"],
        "cluster": row["cluster"],
        "owner": view.owner(row["group_id"]),
        "href": view.address.link("groups", row["group_id"], cluster=row["cluster"]),
        "figures": [
            {
                "value": said(tuple(row[column] for column in columns)),
                "before": ""
                if not compared
                else words.DASH
                if before is None
                else said(tuple(before[column] for column in columns)),
            }
            for _, _, said, columns in _FIGURES
        ],
    }


def _total(rows: Sequence[Row], *columns: str) -> tuple[Any, ...]:
    """Sums of columns; where a bound is not known of one row, it is not known of all."""
    found: list[Any] = []
    for column in columns:
        values = [row[column] for row in rows]
        known = [value for value in values if value is not None]
        is_upper = column.endswith("_max")
        found.append(None if (is_upper and len(known) < len(values)) else sum(known) if known or not values else None)
    return tuple(found)


def _number(values: tuple[Any, ...]) -> str:
    return words.number(values[0])


def _stopped(values: tuple[Any, ...]) -> str:
    known, unknown = values
    if not unknown:
        return words.number(known)
    of = f"not known of {words.counted(unknown, 'rebalance')}"
    return f"{words.number(known)}, {of}" if known is not None else of


_FIGURES: Final[Sequence[tuple[str, str, Callable[[tuple[Any, ...]], str], tuple[str, ...]]]] = (
    ("rebalances", "decisions that gave partitions out", _number, ("rebalances",)),
    (
        "unassigned, partition-s",
        "time that partitions had no owner, summed over partitions, as bounds, and about how long where they agree",
        lambda values: words.between(values[0], values[1], words.seconds),
        ("unassigned_partition_seconds_min", "unassigned_partition_seconds_max"),
    ),
    ("partitions moved", "from one owner to another", _number, ("partitions_moved",)),
    ("more than needed", "moves beyond the fewest that could have balanced the group", _number, ("moves_avoidable",)),
    (
        "stopped, not moved",
        "partitions that nobody read during an eager rebalance although they kept their owner",
        _stopped,
        ("partitions_stopped_unmoved", "stopped_unknown"),
    ),
    (
        "records delayed",
        "records that arrived while their partition had no owner, as bounds",
        lambda values: words.between(values[0], values[1], words.number),
        ("records_delayed_min", "records_delayed_max"),
    ),
)
"""Word, explanation, how to say it, and columns of cost.sql."""


def _causes(rows: Sequence[Row], before: Sequence[Row] | None, kind: str) -> list[dict[str, Any]]:
    earlier = {row["name"]: row["rebalances"] for row in before or () if row["kind"] == kind}
    return [
        {
            "name": row["name"].replace("_", " "),
            "says": _CAUSES.get(row["name"], ""),
            "number": row["rebalances"],
            "before": "" if before is None else words.number(earlier.get(row["name"], 0)) if before else words.DASH,
        }
        for row in rows
        if row["kind"] == kind
    ]


def _asked(view: View, source: CostSource, span: Range, query: str) -> list[Row] | None:
    name = f"{query}{source.suffix}"
    rows: Sequence[Row] | None
    if source.suffix:
        rows = view.archive.ask(name, cluster=view.cluster, since=span.begin, until=span.end)
    else:
        rows = within(view, span, name, cluster=view.cluster)
    return None if rows is None else list(rows)


def _owned(rows: list[Row] | None, owner: str, view: View) -> list[Row] | None:
    return None if rows is None else [row for row in rows if view.owner(row["group_id"]) == owner]


def _reach(source: CostSource, rows: Sequence[Row]) -> str:
    """Up to when roll-ups have figures, as a part of a sentence; "" where they are not asked."""
    newest = max((row["newest"] for row in rows), default=None) if source.suffix else None
    if newest is None:
        return ""
    return f"{_end(newest):%Y-%m-%d %H:%M} UTC"


def _end(newest: date) -> datetime:
    if isinstance(newest, datetime):
        return newest.astimezone(UTC) + _HOUR
    return datetime(newest.year, newest.month, newest.day, tzinfo=UTC) + _DAY


def _fill(view: View) -> Mapping[str, Any]:
    span = view.address.range(view.now)
    sort = view.address.one_of("sort", _SORTS) or "unassigned"
    most = int(view.address.one_of("most", _SHOWN) or _SHOWN[0])
    compared = view.address.one_of("compare", ("before",)) == "before"
    source = source_of(span)
    rows, causes = _asked(view, source, source.span, "cost"), _asked(view, source, source.span, "cost_causes")
    before = causes_before = None
    if compared:
        before = _asked(view, source, source.before, "cost")
        causes_before = _asked(view, source, source.before, "cost_causes")
    owner = view.address.text("owner")
    owners = owner_chips(view, {row["group_id"] for row in rows or ()})
    if owner:
        rows, before = _owned(rows, owner, view), _owned(before, owner, view)
    missing = rows is None or causes is None or (compared and (before is None or causes_before is None))
    # (Roll-ups without a row: nothing was decided, or they are not written yet.)
    known = bool(rows) or (rows is not None and not source.suffix)
    return {
        "ranges": ranges(view, span, RANGES),
        "clusters": cluster_chips(view),
        "owners": owners,
        "owner": owner,
        "many_clusters": len(view.ask("rounds")) > 1,
        "reading": missing,
        "known": known,
        "source": {"": "", "_hours": "by hour", "_days": "by day"}[source.suffix],
        "reach": _reach(source, rows or ()),
        "sums": sums(rows if known else None, before),
        "compare": view.address.here(compare=None if compared else "before"),
        "compared": compared,
        "causes": _causes(causes or (), causes_before, "cause"),
        "protocols": _causes(causes or (), causes_before, "protocol"),
        "columns": [
            {"word": word, "title": title, "sort": name, "href": view.address.here(sort=name), "here": name == sort}
            for (word, title, _, _), name in zip(
                _FIGURES, ("rebalances", "unassigned", "moves", "avoidable", "stopped", "delayed"), strict=True
            )
        ],
        "by_name": view.address.here(sort="group"),
        "sorted_by_name": sort == "group",
        "groups": by_group(rows or (), before, sort, view, most),
        "number": len(rows or ()),
        "more_href": view.address.here(most=_SHOWN[1]) if most < int(_SHOWN[1]) else "",
        "advice": view.address.link("advice", cluster=view.cluster),
    }


BOARD = Board(
    path=("cost",),
    template="cost.html.j2",
    fill=_fill,
    title="Cost of rebalances · Evenkeel",
    word="Cost",
    parameters=frozenset({"range", "from", "to", "compare", "sort", "most", "owner"}),
    span="24h",
)
