"""Steps of the brokers' assignors (KIP-848), translated from the notes of the computation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from assignors import trace
from assignors.assignment import Assignment, PartitionId
from assignors.brokers import ServerGroup
from assignors.explain import steps
from assignors.explain.from_clients import CannotExplainError, dealt_steps
from assignors.explain.ledger import Facts


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


def server_steps(notes: Sequence[object], facts: Facts, group: ServerGroup) -> list[steps.Step]:
    """Steps of `server-uniform` and `server-range`."""
    named = topic_names(group)
    if any(isinstance(note, trace.Cut) for note in notes):
        renamed = [
            trace.Cut([named[topic] for topic in note.topics], note.partitions, note.takers, note.blocks)
            if isinstance(note, trace.Cut)
            else note
            for note in notes
        ]
        return dealt_steps(renamed, facts)
    had = {member: _had(facts, member) for member in facts.topics}
    shares: list[steps.Step] = []
    kept: dict[str, list[PartitionId]] = {}
    given_up: dict[tuple[str, str], list[PartitionId]] = {}
    later: list[steps.Step] = []

    def partition_of(one: tuple[str, int, str]) -> PartitionId:
        return named.get(one[0], one[0]), one[1]

    # One step for all topics, although some releases decide topic by topic what members keep: it reads more easily.
    for key, part in groupby(notes, key=_key):
        for note in part if key[0] != "given" else [_joined(part)]:
            if isinstance(note, trace.ServerShares):
                shares.append(steps.Shares(note.partitions, len(note.members)))
            if not isinstance(note, trace.OnServer):
                continue
            pairs = [(partition_of(one), one[2]) for one in note.places]
            if note.kind == "kept":
                for partition, member in pairs:
                    kept.setdefault(member, []).append(partition)
            elif note.kind == "over":
                for partition, member in pairs:
                    given_up.setdefault((member, note.why), []).append(partition)
            elif note.kind == "given":
                later.append(steps.Given(note.why, tuple(pairs), (0,) * len(pairs)))
            elif note.source is not None:
                partition, target = pairs[0]
                later.append(steps.Moved(partition, note.source, target, 0, 0, note.why))
    everything = [partition for mine in kept.values() for partition in dict.fromkeys(mine)]
    if len(set(everything)) < len(everything):
        reason = "two members had the same partition in their previous targets"
        raise CannotExplainError(reason)
    by_subscription = any(isinstance(note, trace.OnServer) and note.why == "subscribed" for note in notes)
    return _with_sizes(
        [
            *shares,
            *(steps.Kept(m, tuple(dict.fromkeys(of)), max(had[m], len(set(of)))) for m, of in kept.items()),
            *(steps.GivenUp(m, tuple(dict.fromkeys(of)), why) for (m, why), of in given_up.items()),
            *(_no_longer_subscribed(facts) if by_subscription else []),
            *later,
        ],
        dict.fromkeys(facts.topics, 0),
    )


def _joined(part: Iterable[object]) -> trace.OnServer:
    listed = [note for note in part if isinstance(note, trace.OnServer)]
    return trace.OnServer("given", listed[0].why, [one for note in listed for one in note.places])


def _with_sizes(listed: list[steps.Step], sizes: dict[str, int]) -> list[steps.Step]:
    """The same steps with the numbers that the members had just before each."""
    result: list[steps.Step] = []
    for step in listed:
        if isinstance(step, steps.Kept):
            sizes[step.member] += len(step.kept)
        elif isinstance(step, steps.Given):
            before = []
            for _, member in step.given:
                before.append(sizes[member])
                sizes[member] += 1
            result.append(steps.Given(step.why, step.given, tuple(before)))
            continue
        elif isinstance(step, steps.Moved):
            source, target = step.source, step.target
            result.append(steps.Moved(step.moved, source, target, sizes[source], sizes[target], step.why))
            sizes[source] -= 1
            sizes[target] += 1
            continue
        result.append(step)
    return result


def _key(note: object) -> tuple[str, str]:
    if isinstance(note, trace.OnServer):
        return note.kind, note.why
    return type(note).__name__, ""


def _had(facts: Facts, member: str) -> int:
    return sum(
        1 for partition in facts.claims[member] if facts.exists(partition) and partition[0] in facts.topics[member]
    )


def _no_longer_subscribed(facts: Facts) -> list[steps.Step]:
    result: list[steps.Step] = []
    for member, claimed in facts.claims.items():
        lost = sorted(
            partition
            for partition in claimed
            if partition[0] in facts.counts and partition[0] not in facts.topics[member]
        )
        if lost:
            result.append(steps.GivenUp(member, tuple(lost), "subscription"))
    return result
