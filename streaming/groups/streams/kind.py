"""Streams groups: their members' tasks are shown as they are, and as the partitions that active tasks read.

A verdict says whether the target is what the broker's sticky task assignor gives (KIP-1071).

The log has the assignor's inputs: members with their processes, previous tasks, the topology, and the number of standby
replicas, which a round asks for where the log is not read; rounds have the partition counts, from which the number of
tasks follows. Nothing tells the broker's release, so both eras are tried. Only Kafka 4.1, whose early access is not
recomputed, shows in the log, which then lacks the number of replicas. Since 4.4 the assignor goes by what members own,
and by the offsets of the state on their disks, which they report to the coordinator and no record has.

A target that nothing fits is `unverified`: members may have reported such offsets, or the broker may run an assignor of
its own. It is `drifted` only if it violates an invariant: a task active at two members, a task that the topology does
not have, or a member with the active and a standby task of one task. While the coordinator finds topics missing, or
with wrong partition counts, it calls no assignor, and nobody gets a task.

Source of the rules: `GroupMetadataManager`, `streams.TargetAssignmentBuilder` (Kafka 4.2 to 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from assignors import AssignorError
from assignors.brokers import member_orders
from assignors.streams import STREAMS_ERAS, StreamsGroup, StreamsMember, Subtopology
from streaming.groups.context import Context
from streaming.groups.kind import Ownership, Owning
from streaming.groups.modern.group import DecidedTasks, ModernDecision, ModernGroup, owned_now
from streaming.groups.modern.rules import Names, TypeRules, first_that_gives, ownership_version, unknown_inputs
from streaming.groups.rows import DriftedPartition, TopicAssignment
from streaming.groups.state import GroupState, counts_from
from streaming.groups.streams.tasks import (
    STABLE,
    SubtopologyTopics,
    find,
    idle,
    streams_state,
    subtopologies_of,
    with_tasks,
)
from streaming.groups.verdict_inputs import StreamsInputs
from streaming.groups.verdicts import NOT_APPLICABLE, Verdict, why_not_shown
from streaming.records import STREAMS, IdPartitions, StreamsTopology, counts_in, each_of, holders

_BY_OWNED = STREAMS_ERAS[-1]

# Members that share a hash bucket, in every order: as for consumer groups.
_MOST_ORDERS = 16

_REPLICAS = "num.standby.replicas"

_EARLY = "streams groups of Kafka 4.1 are early access, and not recomputed"

_DOUBT = "since Kafka 4.4 the assignor also goes by offsets that members report to the coordinator and no record has"


def recompute(state: GroupState, decision: ModernDecision, context: Context) -> Verdict | str:
    """Recompute the target of a streams group at the round after the decision; text if that is not possible."""
    if decision.tasks is not None and decision.tasks.is_ready is False and not counts_in(decision.targets.values()):
        return Verdict(NOT_APPLICABLE, "topics of the topology were missing or wrong, so no assignor gave tasks")
    asked = _asked_of(state, decision, context)
    if isinstance(asked, str):
        return asked
    tasks, parts = asked
    try:
        size = f"{sum(part.tasks for part in parts):,} tasks"
        doubt = _DOUBT if decision.log_partition >= 0 else f"{_EARLY}; {_DOUBT}"
        return first_that_gives(decision, _candidates(decision, tasks, parts), size, doubt)
    except AssignorError as error:
        return str(error)[:200]


def broken(_state: GroupState, decision: ModernDecision) -> Iterator[DriftedPartition]:
    """Tasks that no assignor gives in this way."""
    if not decision.exact or decision.tasks is None:
        return
    active = holders(decision.targets)
    for (part, number), members in sorted(active.items()):
        if len(members) > 1:
            yield DriftedPartition(part, number, "doubly_assigned", None, tuple(members))
    every = {task: members for task, members in active.items() if len(members) == 1}
    for targets in (decision.tasks.standby, decision.tasks.warmup):
        for member_id, target in targets.items():
            for task in each_of(target):
                if member_id in active.get(task, ()):
                    yield DriftedPartition(*task, "standby_beside_active", None, (member_id,))
                every.setdefault(task, [member_id])
    known = subtopologies_of(decision.topology)
    for (part, number), members in sorted(every.items()):
        if known and part not in known:
            yield DriftedPartition(part, number, "not_in_topology", None, tuple(members))


_Asked = tuple[DecidedTasks, tuple[Subtopology, ...]]


def _asked_of(state: GroupState, decision: ModernDecision, context: Context) -> _Asked | str:
    """What is known of the assignor's input for the target of a decision, or why not enough is."""
    tasks, parts, unknown = decision.tasks, subtopologies_of(decision.topology), unknown_inputs(decision)
    if unknown is not None:
        return unknown
    if tasks is None:
        return "an earlier release has not kept the group's standby tasks"
    if not tasks.settings and decision.log_partition >= 0:
        return _EARLY
    if tasks.is_ready is False:
        return "topics of the topology were missing or wrong, and members have tasks"
    if not parts:
        return "the log lacks the record of the topology"
    if not tasks.settings and any(part.stateful is not False for part in parts.values()):
        return "the right DescribeConfigs on the group is missing, so how many standby replicas it has is not known"
    shown = counts_in(decision.targets.values())
    found = []
    for name, part in parts.items():
        told = _tasks_told(state, name, part, shown.get(name, 0), decision, context)
        if isinstance(told, str):
            return told
        found.append(Subtopology(name, told, bool(part.stateful)))
    return tasks, tuple(found)


def _tasks_told(
    state: GroupState, name: str, part: SubtopologyTopics, shown: int, decision: ModernDecision, context: Context
) -> int | str:
    """How many tasks a subtopology has, if rounds confirm what its target shows; else why that is not known."""
    if part.regexes:
        return f"subtopology {name[:100]} reads topics by a regular expression, which the log does not resolve"
    if part.stateful is None:
        return "the topology was read by a release that did not keep its stores"
    seen = {0}
    for topic in part.read:
        known = state.topics.get(topic)
        if known is None:
            return why_not_shown(topic, context.config)
        counts = counts_from(known, decision.record_time - context.config.metadata_grace_ms)
        seen = {max(one, other) for one in seen for other in counts}
    if shown not in seen:
        listed = ", ".join(map(str, sorted(seen)))
        return f"its target shows {shown} tasks of subtopology {name[:100]}, rounds have seen {listed} partitions"
    return shown


def _candidates(
    decision: ModernDecision, tasks: DecidedTasks, parts: tuple[Subtopology, ...]
) -> Iterator[StreamsInputs]:
    """What the assignor may have been given, members that share a hash bucket in every order, as far as is cheap."""
    old = {new: before for before, new in decision.replaced}
    replicas = tasks.settings.get(_REPLICAS, "0")
    for release in STREAMS_ERAS:
        had, spare = decision.before or {}, tasks.before or {}
        if release == _BY_OWNED:
            had = {name: active for name, (active, _) in tasks.owned.items()}
            spare = {name: standby for name, (_, standby) in tasks.owned.items()}
        members = {}
        for member in decision.members:
            was = old.get(member.member_id, member.member_id)
            members[member.member_id] = StreamsMember(
                member.member_id, member.process_id or "", had.get(was, ()), spare.get(was, ())
            )
        group = StreamsGroup(tuple(members.values()), parts, int(replicas) if replicas.isdecimal() else 0)
        yield StreamsInputs(group, release)
        for order in member_orders(members, _MOST_ORDERS):
            turned = tuple([members[name] for name in order])
            if turned != group.members:
                yield StreamsInputs(replace(group, members=turned), release)


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
