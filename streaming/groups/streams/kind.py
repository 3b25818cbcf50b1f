"""Streams groups: their members' tasks are shown as they are, and as the partitions that active tasks read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streaming.groups.kind import Ownership, Owning
from streaming.groups.modern.group import ModernDecision, ModernGroup, owned_now
from streaming.groups.modern.members import ownership_version
from streaming.groups.modern.rules import Names, TypeRules
from streaming.groups.rows import TopicAssignment
from streaming.groups.state import GroupState
from streaming.groups.streams.findings import find, idle
from streaming.groups.streams.topology import STABLE, streams_state, subtopologies_of, with_tasks
from streaming.groups.streams.verdicts import broken, recompute
from streaming.records import STREAMS, IdPartitions, StreamsTopology


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
    """Partitions that active tasks read.

    None if the topology is unknown or uses a regular expression, or if a subtopology has several topics and no round
    has shown their partition counts.
    """
    parts = subtopologies_of(topology)
    counts = {topic: known.counts[-1].count for topic, known in state.topics.items()}
    read: dict[str, list[int]] = {}
    for name, numbers in tasks:
        part = parts.get(name)
        if part is None or part.regexes or (len(part.read) > 1 and not counts.keys() >= set(part.read)):
            return None
        for topic in part.read:
            existing = [number for number in numbers if len(part.read) == 1 or number < counts[topic]]
            read.setdefault(topic, []).extend(existing)
    return tuple([TopicAssignment(topic, tuple(sorted(numbers))) for topic, numbers in sorted(read.items()) if numbers])


def _owners(state: GroupState, group: ModernGroup) -> Ownership:
    """Who reads what now. Any member may read any topic of the topology."""
    parts = subtopologies_of(group.topology)
    topics = frozenset(topic for part in parts.values() for topic in part.read)
    named = topics if parts and not any(part.regexes for part in parts.values()) else None
    members = []
    for member_id, member in group.members.items():
        read = _read_by_tasks(state, group.topology, owned_now(group, member_id)) or ()
        members.append(Owning(member, tuple([(of.topic, of.partitions) for of in read]), named))
    readers = {topic: name for name, part in parts.items() for topic in part.read}
    return Ownership(members, ownership_version(group), readers)


STREAMS_GROUPS: Final = TypeRules(
    group_type=STREAMS,
    broken=broken,
    recompute=recompute,
    findings=find,
    idle=idle,
    owners=_owners,
    named_target=_named_target,
    stable=STABLE,
    state=streams_state,
    subscribing=with_tasks,
    empty_counts=True,  # repartition topics often have partitions without any record, so without a commit
)
"""Streams groups as the core judges them."""
