"""Decisions: those of a time, with when, why and at what cost; and one of any age, with matrix, lag and members then.

A chart has a stem for each decision while they can be told apart, and sums by step when there are many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.owners import lag_by_member, owners
from dashboards.charts import rebalance_plot, step_plot
from dashboards.format import Row
from dashboards.page.address import WrongAddressError
from dashboards.page.board import TIMES, Board, NotThereError, View, key, name_of
from dashboards.spans import DAY, HOUR, Range, steps_of
from streaming.explain import verdict_in_words

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


def _rebalances(view: View) -> Mapping[str, Any]:
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


REBALANCES = Board(
    path=("rebalances",),
    template="rebalances.html.j2",
    fill=_rebalances,
    title="Rebalances · Evenkeel",
    word="Rebalances",
    parameters=TIMES | {"verdict", "compare", "owner"},
    span="24h",
)


# A group of RocketMQ has a verdict for each of its topics, the worst first.
_MOST_TOPICS: Final = 8

# Numbers are log offsets.
_LARGEST: Final = 2**63 - 1

# The clients' strategies by age, then all others.
_ORDER: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


def _decision(view: View) -> Mapping[str, Any]:
    number = _number(view.address.path[3])
    cluster, group = _named(view)
    name = name_of({"cluster": cluster, "group_id": group})
    found = view.rows("decision", **name, decision=number)
    members = view.rows("decision_members", **name, decision=number)
    what_if = view.rows("decision_what_if", **name, decision=number)
    if not found and not view.unread:
        message = (
            f"No decision {number} of {words.cut(group, 120)} is in the tables: it has not been written yet, is older "
            "than their retention, or never was."
        )
        raise NotThereError(message)
    links = {"group": name, "number": number}
    if view.unread:
        return links
    decision = found[0]
    explained = view.rows("explained", **name, generation=None, decision=number)
    partitions = view.rows("decision_lag", **name, at=decision["record_time"])
    if view.unread:
        return links
    verdict = decision if decision["verdict"] is not None else None
    return {
        **links,
        "decision": decision,
        "owners": owners(members, verdict, partitions, decision["protocol_type"]),
        "strategies": strategies(what_if, decision["protocol_type"]),
        "explained": [(row["topic"], verdict_in_words(row)) for row in explained[:_MOST_TOPICS]],
        "unexplained": len(explained) - _MOST_TOPICS,
        "members": members,
        "lag_by_member": lag_by_member(as_decided(partitions, members)),
    }


def as_decided(partitions: Sequence[Row], members: Sequence[Row]) -> list[Row]:
    """Rows of partitions, each with its owner by this decision: at its time lag still counted for the one before.

    None where several members share it, as in share groups.
    """
    owner: dict[tuple[str, int], str | None] = {}
    for member in members:
        for owned in member["partitions"] or ():
            topic = "@".join(filter(None, (owned["topic"], owned["broker"])))
            for number in owned["partitions"]:
                owner[topic, number] = None if (topic, number) in owner else member["member_id"]
    return [{**row, "member_id": owner.get((row["topic"], row["partition"]))} for row in partitions]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _LARGEST):
        message = f"A decision's number is an offset of the log, not {words.cut(text, 60)}."
        raise WrongAddressError(message)
    return int(text)


def _named(view: View) -> tuple[str, str]:
    """Cluster and id of the group: a living one, or any whose whole id is in the address."""
    asked = view.address.path[1]
    living = view.meant(lambda name: view.rows("groups", group_id=name), "group_id")
    if len(living) == 1:
        return key(living[0])
    if view.cluster is None and len(view.clusters) > 1:
        message = "Several clusters are watched: add ?cluster= and a name to the address."
        raise NotThereError(message)
    return view.cluster or view.clusters[0], asked


_ALONE: Final = {
    "share": "brokers have one assignor for share groups",
    "streams": "brokers have one assignor for streams groups",
    "connect": "Connect has one way to deal for each of its protocols",
}


def strategies(rows: Sequence[Row], protocol_type: str | None = None) -> dict[str, Any]:
    """Values of `strategies.html.j2`: other strategies at a decision.

    Args:
        rows: Rows of what_if.sql.
        protocol_type: The group's.
    """
    if not rows:
        none = "the group had no members yet, its verdict is pending, or what-if is turned off"
        return {"rows": [], "remark": "", "none": _ALONE.get(protocol_type or "", none)}
    ordered = sorted(rows, key=lambda row: (_place(row["strategy"]), row["strategy"]))
    of = ordered[0]
    remark = f"at the decision of {words.time(of['record_time'])}"
    if of["generation"] is not None:
        remark += f", generation {words.number(of['generation'])}"
    return {"rows": ordered, "remark": remark}


def _place(strategy: str) -> int:
    if strategy in _ORDER:
        return _ORDER.index(strategy)
    return len(_ORDER)


DECISION = Board(
    path=("groups", "{group}", "decisions", "{decision}"),
    template="decision.html.j2",
    fill=_decision,
    title="{group}, decision {decision} · Evenkeel",
)
