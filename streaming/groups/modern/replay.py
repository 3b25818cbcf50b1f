"""Rebuilds a modern group from its records: its members, their targets, what they own, and the decisions.

    replay(group, item) -> (group, ModernDecision | Removed | None)

A pure state machine over `ModernInput`, one record at a time, in log order. It replays the log as the coordinator does
when it loads a partition (`GroupMetadataManager.replay`, Kafka 4.x), and has a result at three records only:

    target epoch (6, 12, 20)                     a decision: the new target assignment is complete
    group epoch (3, 11, 17) with no member left  a decision too: the group became empty; no target is computed
    tombstone of the group epoch                 the end: deleted, expired, or continued as a classic group

There is no result between the records of one decision, so it does not matter where a batch ends. As in Kafka, the
target and the current assignment are separate: verdicts are about the target, and what the members own trails behind it
while partitions move (`behind`).

The previous state is reported only if it is known. In a compacted log each key has only its newest record, at that
record's own offset. So the first target epoch found may precede records that belong to it: only their later successors
remain. Nothing is missing from the next target epoch on. Hence the first decision has `exact` False and the second has
no `before`, unless the group was seen from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streaming.groups.modern.group import (
    Before,
    ModernDecision,
    ModernGroup,
    asked_assignors,
    initialized,
    newest_targets,
    subscribing,
)
from streaming.records import (
    MODERN_RECORDS,
    CurrentAssignment,
    GroupEpoch,
    KnownTopics,
    ModernInput,
    ModernMember,
    Removed,
    ResolvedRegex,
    ShareTopics,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
)

# The epoch of a group's first target, when one member has joined and no earlier record can be missing. New groups start
# at epoch 0 up to Kafka 4.2 and at 1 since 4.3 (Java class `ModernGroup`), the first release that writes the time of a
# target.
_FIRST_EPOCH = 1
_FIRST_EPOCH_SINCE_4_3 = 2


def replay(
    group: ModernGroup | None,
    item: ModernInput,
    with_members: Callable[[ModernDecision, ModernGroup], ModernDecision] = subscribing,
    *,
    born: bool = False,
) -> tuple[ModernGroup | None, ModernDecision | Removed | None]:
    """Process the next record of a group.

    Args:
        group: The group so far, modified by the call; None if it has no records yet.
        item: The record.
        with_members: `TypeRules.subscribing` of the group.
        born: Only used if `group` is None: the group cannot have earlier records, because it was a classic group until
            now, or because its end was seen.

    Returns:
        The group, None when it is gone (or never existed: a tombstone without a group), and the record's result.
    """
    if group is None:
        if isinstance(item, Removed):
            return None, None
        group = ModernGroup(item.group_type, exact=born, before=Before({} if born else None))
    if isinstance(item, GroupEpoch):
        # The hash of no topics is 0, like one that is not recorded: where nothing was assigned, a hash means topics.
        assigned = any(target.partitions for target in group.targets.values())
        if (group.metadata_hash or not assigned) and item.metadata_hash not in (0, group.metadata_hash):
            group.before.new_metadata = True
        # Before it makes the first target, the coordinator waits for further members and for topics of the topology.
        is_first = item.epoch in {_FIRST_EPOCH, _FIRST_EPOCH_SINCE_4_3} and len(group.members) == 1
        if is_first and group.epoch < 0 and group.topology is not None and not group.targets:
            group.first_epoch = item.epoch
        group.epoch, group.metadata_hash = item.epoch, item.metadata_hash
        group.validated_topology, group.settings = item.validated_topology, item.assignment_configs
        return group, None if group.members or not group.before.members else _decided(group, item, with_members)
    if isinstance(item, TargetEpoch):
        if not group.exact and _is_first(group, item):
            # `before` may have members of an earlier group of this name, of which only tombstones remain: drop them.
            group.exact, group.before.members, group.before.targets = True, {}, dict.fromkeys(group.targets)
        decision = _decided(group, item, with_members)
        group.decided, group.exact = item, True
        return group, decision
    if isinstance(item, Removed):
        if MODERN_RECORDS.get(item.key_type) is GroupEpoch:
            return None, item
        _remove(group, item)
    elif isinstance(item, ModernMember):
        known = group.members.get(item.member_id)
        if known is not None and (known.topics, known.regex) != (item.topics, item.regex):
            group.before.resubscribed[item.member_id] = None
        group.members[item.member_id] = item
    elif isinstance(item, TargetAssignment):
        _keep_before(group, item.member_id)
        group.targets[item.member_id] = item
    elif isinstance(item, CurrentAssignment):
        group.currents[item.member_id] = item
    elif isinstance(item, ResolvedRegex):
        earlier = group.regexes.get(item.regex)
        if earlier is not None and earlier.topics != item.topics:
            using = [name for name, member in group.members.items() if member.regex == item.regex]
            group.before.resubscribed.update(dict.fromkeys(using))
        group.regexes[item.regex] = item
    elif isinstance(item, KnownTopics):
        if isinstance(item, ShareTopics):
            group.before.new_metadata |= initialized(group.topics) != initialized(item)
        else:
            group.before.new_metadata |= group.topics is not None and group.topics.topics != item.topics
        group.topics = item
    else:
        group.topology = item
    return group, None


def _is_first(group: ModernGroup, item: TargetEpoch) -> bool:
    """Whether this is the first target of the group's life."""
    first = _FIRST_EPOCH_SINCE_4_3 if item.time else _FIRST_EPOCH
    if group.first_epoch == first:
        return True
    if item.epoch != first or len(group.members) != 1 or group.members.keys() != group.targets.keys():
        return False
    # A member with the classic protocol cannot create a consumer group: it was in the classic group that was upgraded.
    return all(member.classic_protocols is None for member in group.members.values())


def _remove(group: ModernGroup, item: Removed) -> None:
    kind, part = MODERN_RECORDS.get(item.key_type), item.part or ""
    tables: dict[type | None, dict[str, Any]] = {
        ModernMember: group.members,
        TargetAssignment: group.targets,
        CurrentAssignment: group.currents,
        ResolvedRegex: group.regexes,
    }
    if kind is TargetAssignment:
        _keep_before(group, part)
    elif kind is KnownTopics:
        group.topics = None
    elif kind is StreamsTopology:
        group.topology = None
    tables.get(kind, {}).pop(part, None)


def _keep_before(group: ModernGroup, member_id: str) -> None:
    target, before = group.targets.get(member_id), group.before
    if member_id not in before.targets:
        before.targets[member_id] = None if target is None else target.partitions
        if target is not None and target.standby:
            before.standby[member_id] = target.standby


def _decided(
    group: ModernGroup,
    item: GroupEpoch | TargetEpoch,
    with_members: Callable[[ModernDecision, ModernGroup], ModernDecision],
) -> ModernDecision:
    """The decision completed by a record; `group` is updated so that it becomes the previous one."""
    targets = {name: group.targets[name].partitions for name in group.members if name in group.targets}
    told, is_known = group.before.members or {}, group.before.members is not None
    replaced = _replaced(told, group.members)
    returned = {name for pair in replaced for name in pair}
    joined = tuple([name for name in group.members if name not in told and name not in returned])
    left = tuple([name for name in told if name not in group.members and name not in returned])
    seen_assignor = item.seen_assignor if isinstance(item, TargetEpoch) else None
    unseen = 0
    if seen_assignor is not None and group.decided is not None:
        unseen = max(0, item.epoch - group.decided.epoch - 1)
    assignors = asked_assignors(group)
    if seen_assignor is not None:
        assignors = (seen_assignor,) if seen_assignor else ()
    decision = ModernDecision(
        record=item.record,
        record_time=item.record_time,
        log_partition=item.log_partition,
        group_type=group.group_type,
        epoch=item.epoch,
        group_epoch=group.epoch,
        became_empty=isinstance(item, GroupEpoch),
        exact=group.exact,
        members=tuple(group.members.values()),
        subscriptions={},
        assignors=assignors,
        targets=targets,
        before=newest_targets(group) if is_known else None,
        joined=joined if is_known else None,
        left=left if is_known else None,
        replaced=replaced,
        undescribed=tuple(sorted(group.members.keys() ^ group.targets.keys())),
        topics=group.topics,
        topology=group.topology,
        unseen=unseen,
    )
    decision = with_members(decision, group)
    group.before = Before(
        {name: member.instance_id for name, member in group.members.items()} if group.exact else None,
        asked=decision.assignors,
        leader_epoch=item.leader_epoch,
        settings=group.settings,
    )
    return decision


def _replaced(told: dict[str, str | None], members: dict[str, ModernMember]) -> tuple[tuple[str, str], ...]:
    """(Previous id, new id) of static members that came back under the same instance id."""
    gone = {instance: name for name, instance in told.items() if instance is not None and name not in members}
    return tuple(
        [
            (gone[member.instance_id], name)
            for name, member in members.items()
            if name not in told and member.instance_id in gone
        ]
    )
