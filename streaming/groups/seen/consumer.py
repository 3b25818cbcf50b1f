"""A KIP-848 group as its coordinator describes it, as the records that lead there from what the core knows.

The records of one look stand in the log's order: members, the group's epoch, targets, the target's epoch, which makes
the decision, then what the members own. All have the round's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from streaming.groups.modern.group import ModernGroup
from streaming.records import (
    CONSUMER,
    CurrentAssignment,
    GroupEpoch,
    GroupObservation,
    IdPartitions,
    ModernInput,
    ModernMember,
    Removed,
    SeenConsumer,
    TargetAssignment,
    TargetEpoch,
)

_MEMBER, _TARGET, _CURRENT = 5, 7, 8
"""Key types of a member's metadata, target and current assignment."""

# `MemberState`: it owns its target, or it has partitions to give up or to wait for. The answer does not say which.
_STABLE, _MOVING = 0, 1

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
