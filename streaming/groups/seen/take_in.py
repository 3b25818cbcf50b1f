"""A look at a group: its membership, then its committed offsets, as inputs that the log would have given.

The core's own steps follow (`classic/churn.py`, `modern/decisions.py`, `lag/`), with the round's number in place of a
log offset. What a look cannot show stays unknown in these inputs: generation, leader, timeouts, times of commits.
A decision that was only seen was made between two looks (`Context.made`), and others may have been made there.

A group that the broker assigns becomes the records that lead there from what the core knows. Those of one look stand
in the log's order: members, topics or topology, the group's epoch, targets, the target's epoch, which makes the
decision, then what the members own. All have the round's number.

For a share group, coordinators tell what each member has, but no targets. A member takes its whole target at the first
heartbeat after it was made (`ShareGroupAssignmentBuilder`). So once all members have reached its epoch, the target is
what they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from streaming.groups.boundaries import fold, take_in_commits
from streaming.groups.classic import churn
from streaming.groups.context import Context
from streaming.groups.modern import decisions as modern
from streaming.groups.modern.group import ModernGroup
from streaming.groups.modern.types import TYPES
from streaming.groups.state import GroupState, SeenState
from streaming.records import (
    CONSUMER,
    CONSUMER_EPOCH_TYPE,
    SHARE,
    CommitWindow,
    CurrentAssignment,
    GroupEpoch,
    GroupObservation,
    KnownTopics,
    Member,
    MembershipRecord,
    MembershipTombstone,
    ModernInput,
    ModernMember,
    Removed,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenMember,
    SeenModern,
    SeenTasks,
    SeenTopology,
    ShareTopics,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
    each_of,
)

_MEMBER, _TARGET, _CURRENT = 5, 7, 8
"""Key types of a member's metadata, target and current assignment: of consumer groups, and as good for the others."""

_Where = tuple[int, int, str, int]

_Item = TypeVar("_Item", ModernMember, TargetAssignment, CurrentAssignment)


def is_settled(told: SeenModern, group_type: str) -> bool:
    """Whether the target is that of the group's epoch: before, members and targets belong to different epochs."""
    if not told.members:
        return True
    has_reached = group_type != SHARE or all(member.epoch == told.epoch for member in told.members)
    return has_reached and told.assignment_epoch == told.epoch


def records_of(
    group: ModernGroup | None, told: SeenModern, observation: GroupObservation, group_type: str
) -> Iterator[ModernInput]:
    """The records that lead from the group as it is known to the group as it was seen.

    Args:
        group: As it is known; None before the first look. It changes while the records are processed.
        told: As it was seen.
        observation: The round.
        group_type: The group's type.
    """
    where = _where(observation, group_type)
    members = {member.member_id: _member(where, member) for member in told.members}
    targets = {member.member_id: _target(where, member) for member in told.members}
    currents = {member.member_id: _current(where, member, targets[member.member_id]) for member in told.members}
    epoch = GroupEpoch(*where, told.epoch)
    known = group if group is not None else ModernGroup(group_type)
    decided = known.decided
    yield from list(_changed(known.members, members, where, _MEMBER))
    yield from _topics(known, observation, where)
    if told.topology is not None:
        yield from _topology(known, told.topology, where)
        validated = told.topology.epoch if told.topology.ready else -1
        epoch = GroupEpoch(
            *where, told.epoch, validated_topology=validated, assignment_configs=told.topology.settings or {}
        )
    if not told.members:
        # The tombstones of its targets come before the epoch that makes it empty.
        yield from list(_changed(known.targets, targets, where, _TARGET))
        yield from list(_changed(known.currents, currents, where, _CURRENT))
    if (known.epoch, known.validated_topology, known.settings) != (
        epoch.epoch,
        epoch.validated_topology,
        epoch.assignment_configs,
    ):
        yield epoch
    if not told.members:
        return
    yield from list(_changed(known.targets, targets, where, _TARGET))
    if decided is None or decided.epoch != told.assignment_epoch:
        yield TargetEpoch(*where, told.assignment_epoch, seen_assignor=told.assignor)
    yield from list(_changed(known.currents, currents, where, _CURRENT))


def _where(observation: GroupObservation, group_type: str) -> _Where:
    return observation.round, observation.time, group_type, -1


def _member(where: _Where, member: SeenMember) -> ModernMember:
    tasks = member.tasks
    return ModernMember(
        *where,
        member.member_id,
        member.instance_id,
        member.rack,
        member.client_id,
        member.client_host,
        # As the broker writes them into the log.
        tuple(sorted(member.topics)),
        member.regex,
        classic_protocols=() if member.classic else None,
        process_id=tasks.process_id if tasks is not None else None,
        topology_epoch=tasks.topology_epoch if tasks is not None else -1,
        client_tags=tasks.client_tags if tasks is not None else None,
        endpoint=tasks.endpoint if tasks is not None else None,
    )


_NO_TASKS = SeenTasks("", -1)


def _target(where: _Where, member: SeenMember) -> TargetAssignment:
    tasks, target = member.tasks or _NO_TASKS, member.target
    if where[2] == SHARE:
        target = member.owned
    return TargetAssignment(*where, member.member_id, target, tasks.target_standby, tasks.target_warmup)


def _current(where: _Where, member: SeenMember, target: TargetAssignment) -> CurrentAssignment:
    tasks = member.tasks or _NO_TASKS
    has, wanted = (member.owned, tasks.standby, tasks.warmup), (target.partitions, target.standby, target.warmup)
    has_target = all(set(each_of(one)) == set(each_of(other)) for one, other in zip(has, wanted, strict=True))
    stable = TYPES[where[2]].stable
    return CurrentAssignment(
        *where,
        member.member_id,
        member.epoch,
        -1,
        # Otherwise it has partitions to give up or to wait for: the answer does not say which.
        stable if has_target else stable + 1,
        member.owned,
        standby=tasks.standby,
        warmup=tasks.warmup,
    )


def _topics(known: ModernGroup, observation: GroupObservation, where: _Where) -> Iterator[KnownTopics]:
    """The partitions that a share group has initialized, where they are known and have changed."""
    if where[2] != SHARE or observation.shares is None:
        return
    ids = {topic.topic: topic.topic_id for topic in observation.topics}
    of_topics = [(ids.get(topic), topic, partitions) for topic, partitions in observation.shares.topics.items()]
    named = [(topic_id, topic, of) for topic_id, topic, of in of_topics if topic_id is not None]
    told = ShareTopics(
        *where,
        tuple([(topic_id, topic, None) for topic_id, topic, _ in named]),
        tuple([(topic_id, tuple([one.partition for one in of])) for topic_id, _, of in named]),
    )
    if known.topics is None or msgspec.structs.replace(known.topics, **_place(where)) != told:
        yield told


def _topology(known: ModernGroup, told: SeenTopology, where: _Where) -> Iterator[StreamsTopology]:
    """The topology of a streams group, where it is known and has changed."""
    topology = StreamsTopology(*where, told.epoch, told.subtopologies, told.internal)
    # Before it is ready, some brokers tell nothing but its epoch.
    if told.subtopologies and (
        known.topology is None or msgspec.structs.replace(known.topology, **_place(where)) != topology
    ):
        yield topology


def _changed(
    known: Mapping[str, _Item], told: Mapping[str, _Item], where: _Where, key_type: int
) -> Iterator[_Item | Removed]:
    for name, item in told.items():
        had = known.get(name)
        if had is None or msgspec.structs.replace(had, **_place(where)) != item:
            yield item
    for name in known:
        if name not in told:
            yield Removed(*where, key_type, name)


def _place(where: _Where) -> dict[str, Any]:
    """The fields of a record that say where and when it was."""
    record, time, _, partition = where
    return {"record": record, "record_time": time, "log_partition": partition}


_EMPTY = "Empty"

# Round numbers are offsets of opening records. Between two of them lies at least a closing record, so the number before
# a round's is no round's. An end that something continues has that number, as in the log, where both are one append; an
# end of itself has the one before.
_CONTINUED, _BY_ITSELF = 1, 2


def process_seen(state: GroupState, observation: GroupObservation, seen: Seen, context: Context) -> None:
    """Process what a round saw of a group whose log is not read."""
    _process_membership(state, observation, seen, context)
    if seen.commits is not None:
        process_commits(state, observation, seen.commits, context)


def process_commits(state: GroupState, observation: GroupObservation, seen: SeenCommits, context: Context) -> None:
    """Process committed offsets that a round saw, as windows of commits."""
    for windows in _windows_of(state, observation, seen):
        for window in windows:
            fold(state, window, context)
        take_in_commits(state)


def _process_membership(state: GroupState, observation: GroupObservation, seen: Seen, context: Context) -> None:
    """Process what a round saw of the group's membership."""
    kept = state.seen
    if kept is None:
        kept = state.seen = SeenState(seen.absent_at, empty=seen.absent_at >= 0)
    if not seen.looked:
        return
    after = max(kept.looked, observation.rested_until)
    until = max(observation.time, observation.closed)
    # Where the clock was ahead at the look before, nobody knows when that was by the present clock.
    context.made = (after if 0 <= after <= until else None, until)
    if observation.group_type in TYPES:
        _process_modern(state, kept, observation, seen.modern, context)
    elif observation.group_type in {None, "classic"}:
        _process_classic(state, kept, observation, seen.classic, context)
    context.made = (None, None)
    kept.looked = observation.time


def _process_classic(
    state: GroupState, kept: SeenState, observation: GroupObservation, told: SeenClassic | None, context: Context
) -> None:
    if told is None and observation.state != _EMPTY:
        return  # as it was, or it rebalances
    if state.modern.lives:
        group = state.modern.group
        names = {member.member_id for member in told.members} if told is not None else set()
        goes_on = group is not None and not names.isdisjoint(group.members)
        _end_modern(state, observation, context, _CONTINUED if goes_on else _BY_ITSELF)
    live = state.live_record()
    if told is None:
        if live is not None and live.members:
            churn.decide(state, _record(observation, live.protocol_type, None, (), context), context)
        kept.empty, kept.untold = True, 0
        return
    kept.empty, kept.untold = kept.empty and live is None, told.more
    if told.more:
        if live is not None:
            churn.end_membership(state, _tombstone(observation, _BY_ITSELF), context)
        return
    record = _record(observation, told.protocol_type, told.protocol or None, told.members, context)
    if live is None or not _is_same(live, record):
        churn.decide(state, record, context)
    kept.empty = False


def _record(
    observation: GroupObservation,
    protocol_type: str,
    protocol: str | None,
    members: tuple[Member, ...],
    context: Context,
) -> MembershipRecord:
    after = context.made[0]
    return MembershipRecord(
        record=observation.round,
        record_time=observation.time,
        protocol_type=protocol_type,
        protocol=protocol,
        members=members,
        seen=True,
        decided_after=-1 if after is None else min(after, observation.time),
    )


def _tombstone(observation: GroupObservation, before: int) -> MembershipTombstone:
    return MembershipTombstone(observation.round - before, observation.time)


def _is_same(known: MembershipRecord, record: MembershipRecord) -> bool:
    """Whether nothing shows a rebalance: the order of members does not.

    A member's subscription is what it joined with. So where members report what they owned (sticky strategies), each
    rebalance shows, even one that changes nothing.
    """
    return (
        known.protocol_type == record.protocol_type
        and known.protocol == record.protocol
        and len(known.members) == len(record.members)
        and {member.member_id: member for member in known.members}
        == {member.member_id: member for member in record.members}
    )


def _process_modern(
    state: GroupState, kept: SeenState, observation: GroupObservation, told: SeenModern | None, context: Context
) -> None:
    group_type = observation.group_type or CONSUMER
    group = state.modern.group
    if group is not None and group.group_type != group_type:
        _end_modern(state, observation, context, _BY_ITSELF)
        group, kept.empty = None, False
    if told is None or not is_settled(told, group_type):
        for topics in _topics(group, observation, _where(observation, group_type)) if group is not None else ():
            modern.follow(state, topics, context)
        return
    live = state.live_record()
    if live is not None:
        names = {member.member_id for member in told.members}
        goes_on = any(member.member_id in names for member in live.members)
        churn.end_membership(state, _tombstone(observation, _CONTINUED if goes_on else _BY_ITSELF), context)
    kept.untold = told.more
    if told.more:
        if state.modern.lives:
            _end_modern(state, observation, context, _BY_ITSELF)
        return
    modern.meet(state, group_type, born=kept.empty)
    for item in records_of(state.modern.group, told, observation, group_type):
        modern.follow(state, item, context)
    kept.empty = not told.members


def _end_modern(state: GroupState, observation: GroupObservation, context: Context, before: int) -> None:
    group_type = state.modern.group.group_type if state.modern.group is not None else CONSUMER
    end = Removed(observation.round - before, observation.time, group_type, -1, CONSUMER_EPOCH_TYPE)
    modern.follow(state, end, context)


def _windows_of(state: GroupState, observation: GroupObservation, seen: SeenCommits) -> Iterator[list[CommitWindow]]:
    """The windows that lead from the offsets that are known to those that were seen: deletions, then commits.

    An offset that has moved shows that there was at least one commit; how many, and when, it does not. An offset that
    has not moved shows nothing: a group may commit the same one again. So lag is judged by the rounds in which offsets
    moved, and a group that commits without moving looks like one that does not commit.
    """
    recreated = {
        topic.topic
        for topic in observation.topics
        if (known := state.topics.get(topic.topic)) is not None
        and known.topic_id is not None
        and topic.topic_id not in {None, known.topic_id}
    }
    gone: list[CommitWindow] = []
    moved: list[CommitWindow] = []
    for topic, offsets in seen.offsets.items():
        known_of = state.partitions.get(topic, {})
        for partition, offset in offsets:
            had = known_of[partition].committed if partition in known_of else -1
            if offset == had:
                continue
            # Offsets of a topic that was deleted are deleted, too; a lower one of its successor is no step back.
            if had >= 0 and (offset < 0 or topic in recreated):
                gone.append(window_seen(observation.round, topic, partition, -1))
            if offset >= 0:
                moved.append(window_seen(observation.round, topic, partition, offset))
    if seen.whole:
        for topic, known_of in state.partitions.items():
            left = {partition for partition, _ in seen.offsets.get(topic, ())}
            gone.extend(
                window_seen(observation.round, topic, partition, -1)
                for partition, known in known_of.items()
                if known.committed >= 0 and partition not in left
            )
    yield gone
    yield moved


def window_seen(number: int, topic: str, partition: int, offset: int) -> CommitWindow:
    """An offset that a round has seen for the first time, as a window of one commit.

    Args:
        number: Number of the round.
        topic: Topic.
        partition: Partition.
        offset: The committed offset; -1 where there is none any more.
    """
    is_gone = offset < 0
    return CommitWindow(
        topic=topic,
        partition=partition,
        commits=0 if is_gone else 1,
        tombstones=1 if is_gone else 0,
        first_offset=offset,
        first_commit_time=-1,
        first_record=number,
        offset=offset,
        leader_epoch=-1,
        last_commit_time=-1,
        last_record=number,
        deleted=is_gone,
        step_back=0,
    )
