"""A modern group out of its records: who is a member, who should own what, who does, and when that was decided.

    take(group, item) -> (group, ModernDecision | Ended | None)

A pure state machine over `ModernInput`, one record at a time, in log order. It follows what the coordinator does when
it loads its log (`GroupMetadataManager.replay`), and says something at three records only:

    target epoch (6, 12, 20)                     a decision: the new target assignment stands, whole
    group epoch (3, 11, 17) with no member left  a decision too: the group became empty; no target is computed
    tombstone of the group epoch                 the end: deleted, expired, or gone on as a classic group

Between the records of one decision it is silent, so it does not matter where a batch was cut. Two things are kept
apart, as Kafka keeps them: the target, which a verdict can be about, and what the members own at present, which trails
behind it for as long as partitions move (`behind`).

What was before is only told where it is known. Whoever begins to read a compacted log finds the newest record of each
key, at its own place: the first target epoch found there may stand before records that belong to it, as their
successors, written later, are all that is left of them. From the next one on nothing is missing. So of the first
decision `exact` is False, and the second has no `before`, unless the group was seen from its beginning.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from streaming.records import (
    SHARE,
    STREAMS,
    CurrentAssignment,
    GroupEpoch,
    IdPartitions,
    KnownTopics,
    ModernInput,
    ModernMember,
    Removed,
    ResolvedRegex,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
)

__all__ = [
    "Ended",
    "ModernDecision",
    "ModernGroup",
    "asked_assignors",
    "behind",
    "forget_before",
    "newest_targets",
    "state_of",
    "subscribed",
    "subscriptions_of",
    "take",
]

_GROUP_EPOCHS = frozenset({3, 11, 17})
_TOPICS = frozenset({4, 9, 15})
_MEMBERS = frozenset({5, 10, 19})
_TARGETS = frozenset({7, 13, 21})
_CURRENTS = frozenset({8, 14, 22})
_REGEX = 16
_TOPOLOGY = 23

# The epoch of a group's first target: one member has joined, and nothing before it can be missing. New groups began at
# epoch 0 up to 4.2 and begin at 1 since 4.3 (`ModernGroup`), which is also the first release that writes the time of
# a target.
_FIRST_EPOCH = 1
_FIRST_EPOCH_SINCE_4_3 = 2

# `MemberState.STABLE`: the member owns its target, no more and no less, if it has reached the target's epoch.
_STABLE = 0


class ModernGroup(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What the log has told of one modern group. Changed in place by `take`; packs as it is.

    Attributes:
        group_type: "consumer", "share" or "streams".
        epoch: Group epoch; -1 before the first.
        decided: The record of the newest decision by a target; None before the first.
        members: Member metadata by member id, in the order in which they joined.
        targets: Target assignment by member id.
        currents: Current assignment by member id.
        regexes: Resolved regular expressions by expression.
        topics: Names and counts by topic id, as far as the log has them; None where it does not.
        topology: Of streams groups; None otherwise.
        exact: Nothing is missing that the log ever held.
        told: Instance id by id of the members at the newest decision; None before the first, or where that was
            not exact.
        before: Target at the newest decision of each member whose target has changed since; None: it had none.
    """

    group_type: str
    epoch: int = -1
    decided: TargetEpoch | None = None
    members: dict[str, ModernMember] = {}
    targets: dict[str, TargetAssignment] = {}
    currents: dict[str, CurrentAssignment] = {}
    regexes: dict[str, ResolvedRegex] = {}
    topics: KnownTopics | None = None
    topology: StreamsTopology | None = None
    exact: bool = False
    told: dict[str, str | None] | None = None
    before: dict[str, IdPartitions | None] = {}


class ModernDecision(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One decision of the coordinator.

    Attributes:
        record: Log offset of the record that closed it.
        record_time: Its timestamp, ms.
        log_partition: Partition of the offsets log.
        group_type: "consumer", "share" or "streams".
        epoch: Epoch of the target, or of the empty group.
        group_epoch: Epoch of the group then; it is ahead where members changed while the target was computed.
        became_empty: The last member left; there is no new target.
        exact: The members and targets are all that there were; see the module.
        members: Member metadata, in the order in which they joined.
        subscriptions: Subscribed topic names by member id, sorted, with what its regular expression stood for then;
            None where that was not resolved.
        assignors: Server assignors that the decision can have been made with; () for the broker's default. See
            `asked_assignors`.
        targets: Target by member id, in the order of the members, each in the order of its record.
        before: The same at the decision before; None where it is not known.
        joined: Ids of the members that were not there at the decision before, replacements aside; None likewise.
        left: Ids of those that are gone, likewise.
        replaced: (id before, id now) of static members that came back under a new id.
        undescribed: Members with a target and no metadata, or the other way round: bytes of theirs are missing.
        topics: Names and counts by topic id, as far as the log has them.
        incarnation: Which group of this name; set by the core.
        carried_over: No assignor made the target: it is the assignment of the classic group that was upgraded
            (`ConsumerGroup.fromClassicGroup`).
        topology: Of streams groups; None otherwise.
        dropped: Too many have come since for it to be judged: what it was about is not kept (`modern.py`).
        more: Decisions before it that were dropped likewise, and of which nothing is kept (`churn.drop_oldest`).
    """

    record: int
    record_time: int
    log_partition: int
    group_type: str
    epoch: int
    group_epoch: int
    became_empty: bool
    exact: bool
    members: tuple[ModernMember, ...]
    subscriptions: dict[str, tuple[str, ...] | None]
    assignors: tuple[str, ...]
    targets: dict[str, IdPartitions]
    before: dict[str, IdPartitions] | None
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    replaced: tuple[tuple[str, str], ...]
    undescribed: tuple[str, ...]
    topics: KnownTopics | None = None
    incarnation: int = -1
    carried_over: bool = False
    topology: StreamsTopology | None = None
    dropped: bool = False
    more: int = 0


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """The group's end as a modern one: its group epoch has a tombstone."""

    record: int
    record_time: int
    log_partition: int
    group_type: str


def take(
    group: ModernGroup | None, item: ModernInput, *, born: bool = False
) -> tuple[ModernGroup | None, ModernDecision | Ended | None]:
    """Take in the next record of a group.

    Args:
        group: What was known, used up by the call; None for a group of which no record has come.
        item: The record.
        born: Asked where `group` is None: nothing of the group can have come before this record, as when it was a
            classic group until now, or when its end was seen.

    Returns:
        What is known now, None when the group is gone (or was never there: a tombstone of nothing), and what
        the record says to the outside.
    """
    if group is None:
        if isinstance(item, Removed):
            return None, None
        group = ModernGroup(item.group_type, exact=born, told={} if born else None)
    if isinstance(item, GroupEpoch):
        group.epoch = item.epoch
        return group, None if group.members or not group.told else _decided(group, item)
    if isinstance(item, TargetEpoch):
        if not group.exact and _is_first(group, item):
            # (Members that an earlier group of this name had, and whose end alone is left, had nothing in this one.)
            group.exact, group.told, group.before = True, {}, dict.fromkeys(group.targets)
        decision = _decided(group, item)
        group.decided, group.exact = item, True
        return group, decision
    if isinstance(item, Removed):
        if item.key_type in _GROUP_EPOCHS:
            return None, Ended(item.record, item.record_time, item.log_partition, item.group_type)
        _remove(group, item)
    elif isinstance(item, ModernMember):
        group.members[item.member_id] = item
    elif isinstance(item, TargetAssignment):
        _keep_before(group, item.member_id)
        group.targets[item.member_id] = item
    elif isinstance(item, CurrentAssignment):
        group.currents[item.member_id] = item
    elif isinstance(item, ResolvedRegex):
        group.regexes[item.regex] = item
    elif isinstance(item, KnownTopics):
        group.topics = item
    else:
        group.topology = item
    return group, None


def state_of(group: ModernGroup) -> str:
    """The group's state in Kafka's words, as the coordinator derives it (`maybeUpdateGroupState`).

    Returns:
        "Empty", "Assigning", "Reconciling" or "Stable"; a share group is "Empty" or "Stable". "NotReady" of a
        streams group hangs on topics that its log does not show, and is told by rounds alone.
    """
    if not group.members:
        return "Empty"
    if group.group_type == SHARE:
        return "Stable"
    if group.decided is None or group.epoch > group.decided.epoch:
        return "Assigning"
    return "Reconciling" if behind(group) else "Stable"


def behind(group: ModernGroup) -> tuple[str, ...]:
    """Ids of the members that have not reached the newest target; the time of `decided` is since when, at most."""
    if group.decided is None:
        return ()
    found = []
    for member_id in group.members:
        current = group.currents.get(member_id)
        if current is None or current.state != _STABLE or current.epoch != group.decided.epoch:
            found.append(member_id)
    return tuple(found)


def forget_before(group: ModernGroup) -> None:
    """Records are missing from here on: what was before the next target is not known, nor is that one whole."""
    group.exact, group.told, group.before = False, None, {}


def newest_targets(group: ModernGroup) -> dict[str, IdPartitions]:
    """Targets by member id as they stood at the newest decision, whatever has been written since."""
    targets = {name: target.partitions for name, target in group.targets.items() if name not in group.before}
    return targets | {name: partitions for name, partitions in group.before.items() if partitions is not None}


def subscribed(group: ModernGroup, member: ModernMember) -> frozenset[str] | None:
    """Names of the topics that a member subscribes to; None when its regular expression is not resolved yet.

    Members of a streams group read the topics of its topology; None where that is not known, or names some by a
    regular expression.
    """
    if group.group_type == STREAMS:
        parts = group.topology.subtopologies if group.topology is not None else ()
        if not parts or any(regexes for _, _, regexes, _ in parts):
            return None
        return frozenset(topic for _, topics, _, _ in parts for topic in topics)
    if member.regex is None:
        return frozenset(member.topics)
    resolved = group.regexes.get(member.regex)
    return None if resolved is None else frozenset(member.topics) | frozenset(resolved.topics)


def subscriptions_of(group: ModernGroup) -> dict[str, tuple[str, ...] | None]:
    """Subscribed topic names by member id, sorted; None where a regular expression is not resolved."""
    alike: dict[frozenset[str] | None, tuple[str, ...] | None] = {}
    result = {}
    for name, member in group.members.items():
        topics = subscribed(group, member)
        if topics not in alike:
            alike[topics] = _sorted(topics)
        result[name] = alike[topics]
    return result


def asked_assignors(group: ModernGroup) -> tuple[str, ...]:
    """Server assignors that most of those members ask for that ask for one; () when none does: the broker's default.

    More than one where they are equally many: which of them the coordinator took is not recorded.
    """
    asked = Counter(member.assignor for member in group.members.values() if member.assignor is not None)
    most = max(asked.values(), default=0)
    return tuple(sorted(name for name, count in asked.items() if count == most))


def _is_first(group: ModernGroup, item: TargetEpoch) -> bool:
    """Whether this is the first target of the group's life."""
    first = _FIRST_EPOCH_SINCE_4_3 if item.time else _FIRST_EPOCH
    if item.epoch != first or len(group.members) != 1 or group.members.keys() != group.targets.keys():
        return False
    # A member of the classic protocol makes no consumer group: it was there before, in the group that was upgraded.
    return all(member.classic_protocols is None for member in group.members.values())


def _remove(group: ModernGroup, item: Removed) -> None:
    part = item.part or ""
    if item.key_type in _MEMBERS:
        group.members.pop(part, None)
    elif item.key_type in _TARGETS:
        _keep_before(group, part)
        group.targets.pop(part, None)
    elif item.key_type in _CURRENTS:
        group.currents.pop(part, None)
    elif item.key_type == _REGEX:
        group.regexes.pop(part, None)
    elif item.key_type in _TOPICS:
        group.topics = None
    elif item.key_type == _TOPOLOGY:
        group.topology = None


def _keep_before(group: ModernGroup, member_id: str) -> None:
    if member_id not in group.before:
        target = group.targets.get(member_id)
        group.before[member_id] = None if target is None else target.partitions


def _decided(group: ModernGroup, item: GroupEpoch | TargetEpoch) -> ModernDecision:
    """The decision that a record closes; from now on it is the one before."""
    targets = {name: group.targets[name].partitions for name in group.members if name in group.targets}
    told, before = group.told, None
    joined: tuple[str, ...] | None = None
    left: tuple[str, ...] | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    if told is not None:
        before = newest_targets(group)
        replaced = _replaced(told, group.members)
        gone, come = {old for old, _ in replaced}, {new for _, new in replaced}
        joined = tuple([name for name in group.members if name not in told and name not in come])
        left = tuple([name for name in told if name not in group.members and name not in gone])
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
        subscriptions=subscriptions_of(group),
        assignors=asked_assignors(group),
        targets=targets,
        before=before,
        joined=joined,
        left=left,
        replaced=replaced,
        undescribed=tuple(sorted(group.members.keys() ^ group.targets.keys())),
        topics=group.topics,
        topology=group.topology,
    )
    group.told = {name: member.instance_id for name, member in group.members.items()} if group.exact else None
    group.before = {}
    return decision


def _sorted(topics: frozenset[str] | None) -> tuple[str, ...] | None:
    return None if topics is None else tuple(sorted(topics))


def _replaced(told: dict[str, str | None], members: dict[str, ModernMember]) -> tuple[tuple[str, str], ...]:
    """Static members that went and came under the same instance id."""
    gone = {instance: name for name, instance in told.items() if instance is not None and name not in members}
    return tuple(
        [
            (gone[member.instance_id], name)
            for name, member in members.items()
            if name not in told and member.instance_id in gone
        ]
    )
