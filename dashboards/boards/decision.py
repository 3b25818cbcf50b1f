"""One decision of any age: what was decided, why, at what cost; the matrix, lag and members as of then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards import format as words
from dashboards.boards.group import members_of, topic_link
from dashboards.boards.parts.decisions import decision_rows, unassigned
from dashboards.boards.parts.owners import owners
from dashboards.boards.parts.strategies import strategies
from dashboards.format import Row
from dashboards.page.address import WrongAddressError
from dashboards.page.board import Board, NotThereError, View
from streaming.explain import verdict_in_words

__all__ = ["BOARD", "as_decided"]

# A sentence may name foreign ids of any length; steps cut their lists themselves.
_LONGEST = 2_000

# A group of RocketMQ has a verdict for each of its topics, the worst first.
_MOST_TOPICS = 8

# Numbers are log offsets.
_LARGEST = 2**63 - 1


def _fill(view: View) -> Mapping[str, Any]:
    number = _number(view.address.path[3])
    cluster, group = _named(view)
    name = {"cluster": cluster, "group_id": group}
    links = {
        "group": group,
        "cluster": cluster,
        "number": number,
        "group_href": view.address.link("groups", group, cluster=cluster),
    }
    found = view.archive.ask("decision", **name, decision=number)
    members = view.archive.ask("decision_members", **name, decision=number)
    what_if = view.archive.ask("decision_what_if", **name, decision=number)
    if found is None or members is None or what_if is None:
        return {**links, "reading": True}
    if not found:
        message = (
            f"No decision {number} of {words.cut(group, 120)} is in the tables: it has not been written yet, is older "
            "than their retention, or never was."
        )
        raise NotThereError(message)
    decision = found[0]
    explained = view.archive.ask("explained", **name, generation=None, decision=number)
    if explained is None:
        return {**links, "reading": True}
    partitions = view.archive.ask("decision_lag", **name, at=decision["record_time"])
    if partitions is None:
        return {**links, "reading": True}
    verdict = decision if decision["verdict"] is not None else None
    return {
        **links,
        "reading": False,
        "time": view.clock.time(decision["record_time"]),
        "facts": _facts(decision, view),
        "causes": _causes(decision),
        "cause": words.cause(decision),
        "decisions": decision_rows([decision], view, with_group=False),
        "owners": owners(members, verdict, partitions, view.clock, topic_link(view, cluster)),
        "strategies": strategies(what_if, verdict, view.clock),
        "explained": explained_of(explained),
        "members": members_of(members, as_decided(partitions, members), view, cluster),
        "previous": _beside(view, group, cluster, decision["previous_decision"]),
        "following": _beside(view, group, cluster, decision["next_decision"]),
    }


def as_decided(partitions: Sequence[Row], members: Sequence[Row]) -> list[Row]:
    """Rows of partitions, each with its owner by this decision: at its time lag still counted for the one before."""
    owner = {
        ("@".join(filter(None, (owned["topic"], owned["broker"]))), number): member["member_id"]
        for member in members
        for owned in member["partitions"] or ()
        for number in owned["partitions"]
    }
    return [{**row, "member_id": owner.get((row["topic"], row["partition"]))} for row in partitions]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _LARGEST):
        message = f"A decision's number is an offset of the log, not {words.cut(text, 60)}."
        raise WrongAddressError(message)
    return int(text)


def _named(view: View) -> tuple[str, str]:
    """Cluster and id of the group: a living one, or any whose whole id is in the address."""
    asked = view.address.path[1]
    living = [g for g in view.groups(view.cluster) if asked in {g["group_id"], words.key_of(g["group_id"])}]
    if len(living) == 1:
        return living[0]["cluster"], living[0]["group_id"]
    clusters = [row["cluster"] for row in view.ask("rounds")]
    if view.cluster is None and len(clusters) > 1:
        message = "Several clusters are watched: add ?cluster= and a name to the address."
        raise NotThereError(message)
    return view.cluster or clusters[0], asked


def _facts(decision: Row, view: View) -> list[dict[str, str]]:
    verdict = (decision["verdict"] or "pending").replace("_", " ")
    least = words.number(decision["partitions_moved_optimal"])
    facts = [
        ("verdict", verdict, decision["reason"] or ""),
        (
            "moves",
            words.number(decision["partitions_moved"]),
            f"the fewest that could have balanced the group: {least}",
        ),
        ("fewest possible", least, ""),
        ("unassigned, partition-s", unassigned(decision), "time without an owner, summed over partitions"),
        *_preparing(decision, view),
        ("members", words.number(decision["members"]), ""),
        ("partitions", words.number(decision["partitions"]), ""),
        ("generation", words.number(decision["generation"]), ""),
        ("strategy", words.cut(decision["strategy"] or words.DASH, 32), decision["strategy"] or ""),
        ("protocol", words.cut(decision["rebalance_protocol"] or words.DASH, 24), "how members rebalanced"),
        ("recomputed as", words.cut(decision["matching_library"] or words.DASH, 32), ""),
    ]
    return [{"word": word, "value": value, "title": title} for word, value, title in facts]


def _preparing(decision: Row, view: View) -> list[tuple[str, str, str]]:
    """Since when only an upper bound of the time without an owner is known; nothing where no round saw it."""
    since = decision["preparing_since"]
    title = "until they join again they may go on, and no API tells which have: only the upper bound has this time"
    return [] if since is None else [("members awaited since", view.clock.time(since), title)]


def _causes(decision: Row) -> list[dict[str, str]]:
    listed: Sequence[Row] = decision["causes"] or ()
    return [
        {"cause": words.cut(found["cause"].replace("_", " "), 60), "evidence": words.cut(found["evidence"] or "", 400)}
        for found in listed
    ]


def explained_of(verdicts: Sequence[Row]) -> dict[str, Any]:
    """Why the assignment should be as it is, and what is different, topic by topic where each has its verdict."""
    return {
        "topics": [
            {
                "topic": None if row["topic"] is None else words.cut(row["topic"], 120),
                "sentences": [words.cut(sentence, _LONGEST) for sentence in told.sentences],
                "drift": [words.cut(sentence, _LONGEST) for sentence in told.drift],
            }
            for row in verdicts[:_MOST_TOPICS]
            for told in (verdict_in_words(row),)
        ],
        "left": max(0, len(verdicts) - _MOST_TOPICS),
    }


def _beside(view: View, group: str, cluster: str, number: int | None) -> str:
    if number is None:
        return ""
    return view.address.link("groups", group, "decisions", str(number), cluster=cluster)


BOARD = Board(
    path=("groups", "{group}", "decisions", "{decision}"),
    template="decision.html.j2",
    fill=_fill,
    title="{group}, decision {decision} · Evenkeel",
)
