"""Streams groups: their members' tasks are shown as the partitions that these read, their targets are not judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streaming.groups.consumer.recompute import moves_of_target
from streaming.groups.context import Context
from streaming.groups.kind import Ownership, Owning
from streaming.groups.modern.group import ModernDecision, owned_now
from streaming.groups.modern.members import ownership_version
from streaming.groups.modern.rules import Names, TypeRules
from streaming.groups.rows import TopicAssignment
from streaming.groups.state import GroupState
from streaming.groups.verdicts import NOT_APPLICABLE, Verdict
from streaming.records import STREAMS, IdPartitions, StreamsTopology


def _judge(_state: GroupState, _decision: ModernDecision, _context: Context) -> Verdict:
    return Verdict(NOT_APPLICABLE, "assignments of streams groups are shown, not recomputed")


def _named_target(
    state: GroupState, decision: ModernDecision, target: IdPartitions, _names: Names
) -> Sequence[TopicAssignment] | str:
    read = _read_by_tasks(state, decision.topology, target)
    if read is None:
        return "the partitions that its tasks read are not known"
    return read


def _read_by_tasks(
    state: GroupState, topology: StreamsTopology | None, tasks: IdPartitions
) -> tuple[TopicAssignment, ...] | None:
    """Partitions that active tasks read: task n of a subtopology reads partition n of each of its topics, if it exists.

    None if the topology is unknown or uses a regular expression, or if a subtopology has several topics and no round
    has shown their partition counts.
    """
    sources = {}
    for name, topics, regexes, repartitions in topology.subtopologies if topology is not None else ():
        sources[name] = None if regexes else (*topics, *repartitions)
    counts = {topic: known.counts[-1].count for topic, known in state.topics.items()}
    read: dict[str, list[int]] = {}
    for name, numbers in tasks:
        topics_of = sources.get(name)
        if topics_of is None or (len(topics_of) > 1 and not counts.keys() >= set(topics_of)):
            return None
        for topic in topics_of:
            existing = [number for number in numbers if len(topics_of) == 1 or number < counts[topic]]
            read.setdefault(topic, []).extend(existing)
    return tuple([TopicAssignment(topic, tuple(sorted(numbers))) for topic, numbers in sorted(read.items()) if numbers])


def _owners(state: GroupState) -> Ownership:
    """Who reads what now. Members have tasks, so it is not known which topics they may have."""
    group = state.modern.group
    assert group is not None  # noqa: S101  # it has members
    members = []
    for member_id, member in group.members.items():
        read = _read_by_tasks(state, group.topology, owned_now(group, member_id)) or ()
        members.append(Owning(member, tuple([(of.topic, of.partitions) for of in read]), None))
    return Ownership(members, ownership_version(group))


STREAMS_GROUPS: Final = TypeRules(
    group_type=STREAMS,
    judge=_judge,
    findings=lambda _state, _observation, _context: [],
    owners=_owners,
    named_target=_named_target,
    moves=moves_of_target,
    least_moves=lambda _decision, _names: None,
    balance=lambda _decision, _names: (None, None),
)
"""Streams groups as the core judges them."""
