"""Explanations of the brokers' assignors (KIP-848), translated from the notes of the computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from assignors.assignment import Assignment, PartitionId
from assignors.brokers import ServerGroup
from assignors.context import Note
from assignors.explain.clients import CannotExplainError, Changes, Facts
from assignors.explain.sticky_steps import GivenUp, Kept
from assignors.steps import CutIntoBlocks, Ordered, Shares, Step, steps_in
from assignors.strategy import Release

_RULES = {
    "server-range": (
        "The broker's range cuts each topic by itself: its partitions, in order, into one block per subscriber; where "
        "they do not divide evenly, the first subscribers get one more."
    ),
    "server-uniform": (
        "The broker's uniform lets members keep the partitions of their previous target as far as the balance allows, "
        "gives the free ones to members with few, and moves some where members subscribe to different topics."
    ),
}

# The brokers' range kept earlier targets in its first release.
_RANGE_KEEPS: Release = (3, 9)


def rule_of(strategy: str, release: Release | None) -> str:
    """The rule of a broker's assignor."""
    if strategy == "server-range" and release is not None and release < _RANGE_KEEPS:
        return (
            "The broker's range, in this release, lets members keep up to their share of each topic, the lowest "
            "partitions first, and gives the rest in order to those below it."
        )
    return _RULES[strategy]


def topic_names(group: ServerGroup) -> dict[str, str]:
    """Names of topics by id; ids of topics that are gone are missing."""
    return {group.uuids[topic.topic_id].text: topic_name for topic_name, topic in group.topics.items()}


def facts_of(group: ServerGroup) -> Facts:
    """What is known of a group before its target is computed; topics by name."""
    by_id = topic_names(group)
    return Facts(
        topics={member.member_id: frozenset(t for t in member.topics if t in group.topics) for member in group.members},
        counts={topic_name: topic.partitions for topic_name, topic in group.topics.items()},
        instances={member.member_id: member.group_instance_id for member in group.members},
        claims={
            member.member_id: frozenset(
                (by_id.get(group.uuids[topic_id].text, topic_id), number)
                for topic_id, numbers in member.target
                for number in numbers
            )
            for member in group.members
        },
    )


def by_name(assignment: Assignment, group: ServerGroup) -> Assignment:
    """An assignment by topic id, by topic name."""
    named = topic_names(group)
    return {
        member: {named.get(topic_id, topic_id): partitions for topic_id, partitions in topics.items()}
        for member, topics in assignment.items()
    }


def server_steps(notes: Sequence[object], facts: Facts, group: ServerGroup) -> list[Step]:
    """Steps of `server-uniform` and `server-range`."""
    named = topic_names(group)
    if any(isinstance(note, Ordered) for note in notes):
        return [
            replace(step, topics=tuple(named[topic] for topic in step.topics))
            if isinstance(step, CutIntoBlocks)
            else step
            for step in steps_in(notes)
        ]
    taken = [_named(note, named) for note in notes if isinstance(note, Note)]
    # One step for all topics, although some releases decide topic by topic what members keep: it reads more easily.
    kept: dict[str, dict[PartitionId, None]] = {member: {} for member in facts.topics}
    given_up: dict[tuple[str, str], list[PartitionId]] = {}
    for note in taken:
        for partition, member in note.places:
            if note.kind == "kept":
                kept[member][partition] = None
            elif note.kind == "over":
                given_up.setdefault((member, note.why), []).append(partition)
    if len(set().union(*kept.values())) < sum(map(len, kept.values())):
        reason = "two members had the same partition in their previous targets"
        raise CannotExplainError(reason)
    if any(note.why == "subscribed" for note in taken):
        for member, claimed in facts.claims.items():
            lost = sorted(p for p in claimed if p[0] in facts.counts and p[0] not in facts.topics[member])
            if lost:
                given_up[member, "subscription"] = lost
    result: list[Step] = [note for note in notes if isinstance(note, Shares)]
    result += [Kept(m, tuple(mine), max(_had(facts, m), len(mine))) for m, mine in kept.items() if mine]
    result += [GivenUp(member, tuple(dict.fromkeys(lost)), why) for (member, why), lost in given_up.items()]
    changes = Changes({member: len(mine) for member, mine in kept.items()})
    for (kind, why), part in groupby(taken, key=lambda note: (note.kind, note.why)):
        if kind == "given":
            result += changes.given(why, part)
        elif kind == "moved":
            result += [changes.moved(note, why) for note in part]
    return result


def _named(note: Note, topics: Mapping[str, str]) -> Note:
    places = [((topics.get(topic_id, topic_id), number), member) for (topic_id, number), member in note.places]
    return replace(note, places=places)


def _had(facts: Facts, member: str) -> int:
    return sum(facts.exists(partition) and partition[0] in facts.topics[member] for partition in facts.claims[member])
