"""A look at a group: its membership, then its committed offsets, as inputs that the log would have given.

The core's own steps follow (`classic/churn.py`, `modern/decisions.py`, `lag/`), with the round's number in place of a
log offset. What a look cannot show stays unknown in these inputs: generation, leader, timeouts, times of commits.
A decision that was only seen was made between two looks (`Context.made`), and others may have been made there.

A KIP-848 group becomes the records that lead there from what the core knows. Those of one look stand in the log's
order: members, the group's epoch, targets, the target's epoch, which makes the decision, then what the members own. All
have the round's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from streaming.groups.boundaries import fold, take_in_commits
from streaming.groups.classic import churn
from streaming.groups.consumer.kind import CONSUMER_GROUPS
from streaming.groups.context import Context
from streaming.groups.modern import decisions as modern
from streaming.groups.modern.group import ModernGroup
from streaming.groups.state import GroupState, SeenState
from streaming.records import (
    CONSUMER,
    CONSUMER_EPOCH_TYPE,
    CommitWindow,
    CurrentAssignment,
    GroupEpoch,
    GroupObservation,
    IdPartitions,
    Member,
    MembershipRecord,
    MembershipTombstone,
    ModernInput,
    ModernMember,
    Removed,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenConsumer,
    TargetAssignment,
    TargetEpoch,
)

_MEMBER, _TARGET, _CURRENT = 5, 7, 8
"""Key types of a member's metadata, target and current assignment."""

# `MemberState`: it owns its target, or it has partitions to give up or to wait for. The answer does not say which.
_STABLE, _MOVING = 0, 1

_RULES = {CONSUMER: CONSUMER_GROUPS}

_Item = TypeVar("_Item", ModernMember, TargetAssignment, CurrentAssignment)


def is_settled(told: SeenConsumer) -> bool:
    """Whether the target is that of the group's epoch: before, members and targets belong to different epochs."""
    return told.assignment_epoch == told.epoch or not told.members


def records_of(group: ModernGroup | None, told: SeenConsumer, observation: GroupObservation) -> Iterator[ModernInput]:
    """The records that lead from the group as it is known to the group as it was seen.

    Args:
        group: As it is known; None before the first look. It changes while the records are processed.
        told: As it was seen.
        observation: The round.
    """
    where = observation.round, observation.time, CONSUMER, -1
    members = {
        member.member_id: ModernMember(
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
        )
        for member in told.members
    }
    targets = {member.member_id: TargetAssignment(*where, member.member_id, member.target) for member in told.members}
    currents = {
        member.member_id: CurrentAssignment(
            *where,
            member.member_id,
            member.epoch,
            -1,
            _STABLE if _same_places(member.owned, member.target) else _MOVING,
            member.owned,
        )
        for member in told.members
    }
    epoch, decided = (group.epoch, group.decided) if group is not None else (-1, None)
    known = group if group is not None else ModernGroup(CONSUMER)
    yield from list(_changed(known.members, members, where, _MEMBER))
    if not told.members:
        # The tombstones of its targets come before the epoch that makes it empty.
        yield from list(_changed(known.targets, targets, where, _TARGET))
        yield from list(_changed(known.currents, currents, where, _CURRENT))
    if epoch != told.epoch:
        yield GroupEpoch(*where, told.epoch)
    if not told.members:
        return
    yield from list(_changed(known.targets, targets, where, _TARGET))
    if decided is None or decided.epoch != told.assignment_epoch:
        yield TargetEpoch(*where, told.assignment_epoch, seen_assignor=told.assignor)
    yield from list(_changed(known.currents, currents, where, _CURRENT))


def _changed(
    known: Mapping[str, _Item], told: Mapping[str, _Item], where: tuple[int, int, str, int], key_type: int
) -> Iterator[_Item | Removed]:
    record, time, _, partition = where
    for name, item in told.items():
        had = known.get(name)
        if had is None or _content(had, record, time, partition) != item:
            yield item
    for name in known:
        if name not in told:
            yield Removed(*where, key_type, name)


def _content(item: _Item, record: int, time: int, partition: int) -> _Item:
    return msgspec.structs.replace(item, record=record, record_time=time, log_partition=partition)


def _same_places(one: IdPartitions, other: IdPartitions) -> bool:
    return {(i, n) for i, numbers in one for n in numbers} == {(i, n) for i, numbers in other for n in numbers}


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
    if observation.group_type == CONSUMER:
        _process_consumer(state, kept, observation, seen.consumer, context)
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
        _end_consumer(state, observation, context, _CONTINUED if goes_on else _BY_ITSELF)
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


def _process_consumer(
    state: GroupState, kept: SeenState, observation: GroupObservation, told: SeenConsumer | None, context: Context
) -> None:
    if told is None or not is_settled(told):
        return
    live = state.live_record()
    if live is not None:
        names = {member.member_id for member in told.members}
        goes_on = any(member.member_id in names for member in live.members)
        churn.end_membership(state, _tombstone(observation, _CONTINUED if goes_on else _BY_ITSELF), context)
    kept.untold = told.more
    if told.more:
        if state.modern.lives:
            _end_consumer(state, observation, context, _BY_ITSELF)
        return
    modern.meet(state, born=kept.empty)
    for item in records_of(state.modern.group, told, observation):
        modern.follow(state, item, context, _RULES)
    kept.empty = not told.members


def _end_consumer(state: GroupState, observation: GroupObservation, context: Context, before: int) -> None:
    end = Removed(observation.round - before, observation.time, CONSUMER, -1, CONSUMER_EPOCH_TYPE)
    modern.follow(state, end, context, _RULES)


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
