"""Rebuilds a modern group from its records: its members, their targets, what they own, and the decisions.

    take(group, item) -> (group, ModernDecision | Ended | None)

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

from collections import Counter
from collections.abc import Iterable
from typing import Final

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

_GROUP_EPOCHS = frozenset({3, 11, 17})
_TOPICS = frozenset({4, 9, 15})
_MEMBERS = frozenset({5, 10, 19})
_TARGETS = frozenset({7, 13, 21})
_CURRENTS = frozenset({8, 14, 22})
_REGEX = 16
_TOPOLOGY = 23

# The epoch of a group's first target, when one member has joined and no earlier record can be missing. New groups start
# at epoch 0 up to Kafka 4.2 and at 1 since 4.3 (Java class `ModernGroup`), the first release that writes the time of a
# target.
_FIRST_EPOCH = 1
_FIRST_EPOCH_SINCE_4_3 = 2

# `MemberState.STABLE`: the member owns exactly its target, if it has reached the target's epoch.
_STABLE = 0

AWAY: Final = -2
"""Epoch of a static member that is away and expected back (`LEAVE_GROUP_STATIC_MEMBER_EPOCH`)."""


class ModernGroup(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """One modern group, according to the log. Changed in place by `take`; packed as it is.

    Attributes:
        group_type: "consumer", "share" or "streams".
        epoch: Group epoch; -1 before the first.
        decided: The newest target epoch record; None before the first.
        members: Member metadata by member id, in the order in which they joined.
        targets: Target assignment by member id.
        currents: Current assignment by member id.
        regexes: Resolved regular expressions by expression.
        topics: Names and counts by topic id, if the log has them (up to Kafka 4.0); None otherwise.
        topology: Topology of a streams group; None otherwise.
        exact: No record that the log ever held is missing.
        told: Instance id by member id at the newest decision; None before the first, or if that one was not exact.
        before: For each member whose target has changed since the newest decision, the target at that decision; None
            as a value if it had none.
        metadata_hash: Hash of the subscribed topics' metadata (`GroupEpoch`); 0 when not recorded.
        told_hash: The same at the newest decision.
        asked: Server assignors that members requested at the newest decision.
        was: Metadata at the newest decision, of its members that have subscribed to something else since, and of its
            static members that are gone.
        regexes_before: Topics of the regular expressions at the newest decision, where they have changed since; None as
            a value for a new expression.
        topics_before: `topics` at the newest decision, if they have changed since; None otherwise.
        away: Times of the records by which static members went away for a while (epoch -2), ms, while they are away,
            and until the next decision if they were removed then.
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
    metadata_hash: int = 0
    told_hash: int = 0
    asked: tuple[str, ...] = ()
    was: dict[str, ModernMember] = {}
    regexes_before: dict[str, tuple[str, ...] | None] = {}
    topics_before: KnownTopics | None = None
    away: dict[str, int] = {}


class ModernDecision(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One decision of the coordinator.

    Attributes:
        record: Log offset of its last record.
        record_time: Timestamp of that record, ms.
        log_partition: Partition of the offsets log.
        group_type: "consumer", "share" or "streams".
        epoch: Epoch of the target, or of the empty group.
        group_epoch: Epoch of the group then; it is higher if members changed while the target was computed.
        became_empty: The last member left; there is no new target.
        exact: The members and targets are complete; see the module docstring.
        members: Member metadata, in the order in which they joined.
        subscriptions: By member id, the place of its subscribed topics in `topic_lists`; None if its regular expression
            was not resolved. (The state of an older release has the topics themselves here.) See `topics_of`.
        assignors: Server assignors that may have made the decision; () for the broker's default. See
            `asked_assignors`.
        targets: Target by member id, in the order of the members, each in the order of its record.
        before: The previous decision's target by member id; None if unknown.
        joined: Ids of the members that joined since the previous decision, except replacements; None if unknown.
        left: Ids of the members that left since then, except replaced ones; None if unknown.
        replaced: (previous id, new id) of static members that came back under a new id.
        undescribed: Ids of members with a target but no metadata, or with metadata but no target.
        topics: Names and counts by topic id, if the log has them; None otherwise.
        incarnation: The group's incarnation; set by the core.
        carried_over: The target is the assignment of the classic group that was upgraded
            (`ConsumerGroup.fromClassicGroup`); no assignor made it.
        topology: Topology of a streams group; None otherwise.
        dropped: Too many later decisions came before a round could judge it; its content is not kept (`decisions.py`).
        more: Number of dropped decisions before this dropped one, otherwise forgotten (`verdicts.drop_oldest`).
        unseen: Epochs between a decision that was only seen and the previous look, whose targets are not known.
        topic_lists: The different lists of topic names that members subscribe to, each sorted, including the matches of
            regular expressions at the time. A hundred members may share one of a thousand topics.
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
    subscriptions: dict[str, tuple[str, ...] | int | None]
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
    unseen: int = 0
    topic_lists: tuple[tuple[str, ...], ...] = ()

    def topics_of(self, member_id: str) -> tuple[str, ...] | None:
        """Topics that a member subscribes to, sorted; None if its regular expression was not resolved."""
        place = self.subscriptions.get(member_id)
        return self.topic_lists[place] if isinstance(place, int) else place

    def different_subscriptions(self) -> Iterable[tuple[str, ...] | None]:
        """What members subscribe to, each list once."""
        return dict.fromkeys(map(self.topics_of, self.subscriptions))


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """The end of a modern group: the tombstone of its group epoch."""

    record: int
    record_time: int
    log_partition: int
    group_type: str


def take(
    group: ModernGroup | None, item: ModernInput, *, born: bool = False
) -> tuple[ModernGroup | None, ModernDecision | Ended | None]:
    """Process the next record of a group.

    Args:
        group: The group so far, modified by the call; None if it has no records yet.
        item: The record.
        born: Only used if `group` is None: the group cannot have earlier records, because it was a classic group until
            now, or because its end was seen.

    Returns:
        The group, None when it is gone (or never existed: a tombstone without a group), and the record's result.
    """
    if group is None:
        if isinstance(item, Removed):
            return None, None
        group = ModernGroup(item.group_type, exact=born, told={} if born else None)
    if isinstance(item, GroupEpoch):
        group.epoch, group.metadata_hash = item.epoch, item.metadata_hash
        return group, None if group.members or not group.told else _decided(group, item)
    if isinstance(item, TargetEpoch):
        if not group.exact and _is_first(group, item):
            # `before` may have members of an earlier group of this name, of which only tombstones remain: drop them.
            group.exact, group.told, group.before = True, {}, dict.fromkeys(group.targets)
        decision = _decided(group, item)
        group.decided, group.exact = item, True
        return group, decision
    if isinstance(item, Removed):
        if item.key_type in _GROUP_EPOCHS:
            return None, Ended(item.record, item.record_time, item.log_partition, item.group_type)
        _remove(group, item)
    elif isinstance(item, ModernMember):
        known = group.members.get(item.member_id)
        if known is not None and _asks(known) != _asks(item):
            _keep_was(group, known)
        group.members[item.member_id] = item
    elif isinstance(item, TargetAssignment):
        _keep_before(group, item.member_id)
        group.targets[item.member_id] = item
    elif isinstance(item, CurrentAssignment):
        group.currents[item.member_id] = item
        if item.epoch == AWAY and (item.member_id in group.members or item.member_id in (group.told or ())):
            group.away[item.member_id] = item.record_time
        elif item.member_id in group.away:
            del group.away[item.member_id]
    elif isinstance(item, ResolvedRegex):
        _keep_regex(group, item.regex, item.topics)
        group.regexes[item.regex] = item
    elif isinstance(item, KnownTopics):
        group.topics_before = group.topics_before or group.topics
        group.topics = item
    else:
        group.topology = item
    return group, None


def state_of(group: ModernGroup) -> str:
    """The group's state in Kafka's words, derived as the coordinator does (`maybeUpdateGroupState`).

    Returns:
        "Empty", "Assigning", "Reconciling" or "Stable"; for a share group "Empty" or "Stable". The state "NotReady" of
        a streams group depends on topics that the log does not show; only rounds can report it.
    """
    if not group.members:
        return "Empty"
    if group.group_type == SHARE:
        return "Stable"
    if group.decided is None or group.epoch > group.decided.epoch:
        return "Assigning"
    return "Reconciling" if behind(group) else "Stable"


def behind(group: ModernGroup) -> tuple[str, ...]:
    """Ids of the members that have not reached the newest target, for no longer than since the time of `decided`."""
    if group.decided is None:
        return ()
    found = []
    for member_id in group.members:
        current = group.currents.get(member_id)
        if current is None or current.state != _STABLE or current.epoch != group.decided.epoch:
            found.append(member_id)
    return tuple(found)


def forget_before(group: ModernGroup) -> None:
    """Note that records may be missing: the next target is not exact, and what came before it is unknown."""
    group.exact, group.told, group.before = False, None, {}
    group.was, group.regexes_before, group.topics_before = {}, {}, None


def newest_targets(group: ModernGroup) -> dict[str, IdPartitions]:
    """Targets by member id at the newest decision, without changes written since."""
    targets = {name: target.partitions for name, target in group.targets.items() if name not in group.before}
    return targets | {name: partitions for name, partitions in group.before.items() if partitions is not None}


def subscribed(group: ModernGroup, member: ModernMember) -> frozenset[str] | None:
    """Names of the topics that a member subscribes to; None if its regular expression is not resolved yet.

    Members of a streams group read the topics of its topology; None if that is unknown or uses a regular expression.
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


def subscriptions_of(group: ModernGroup) -> dict[str, frozenset[str] | None]:
    """`subscribed` of every member, by id; members that ask for the same share one set."""
    found: dict[tuple[tuple[str, ...], str | None], frozenset[str] | None] = {}
    result = {}
    for name, member in group.members.items():
        asked = member.topics, member.regex
        if asked not in found:
            found[asked] = subscribed(group, member)
        result[name] = found[asked]
    return result


def subscribing(decision: ModernDecision, group: ModernGroup) -> ModernDecision:
    """The decision, with what the members of a group subscribe to now."""
    places: dict[frozenset[str], int] = {}
    subscriptions: dict[str, tuple[str, ...] | int | None] = {}
    for name, topics in subscriptions_of(group).items():
        subscriptions[name] = None if topics is None else places.setdefault(topics, len(places))
    return msgspec.structs.replace(
        decision, subscriptions=subscriptions, topic_lists=tuple([tuple(sorted(topics)) for topics in places])
    )


def asked_assignors(group: ModernGroup) -> tuple[str, ...]:
    """The server assignor that most members request; () if none requests one, which means the broker's default.

    Several if they have equally many votes: the log does not record which one the coordinator took.
    """
    asked = Counter(member.assignor for member in group.members.values() if member.assignor is not None)
    most = max(asked.values(), default=0)
    return tuple(sorted(name for name, count in asked.items() if count == most))


def _is_first(group: ModernGroup, item: TargetEpoch) -> bool:
    """Whether this is the first target of the group's life."""
    first = _FIRST_EPOCH_SINCE_4_3 if item.time else _FIRST_EPOCH
    if item.epoch != first or len(group.members) != 1 or group.members.keys() != group.targets.keys():
        return False
    # A member with the classic protocol cannot create a consumer group: it was in the classic group that was upgraded.
    return all(member.classic_protocols is None for member in group.members.values())


def _remove(group: ModernGroup, item: Removed) -> None:
    part = item.part or ""
    if item.key_type in _MEMBERS:
        known = group.members.pop(part, None)
        if part not in (group.told or ()):
            group.away.pop(part, None)
        if known is not None and known.instance_id is not None:
            _keep_was(group, known)
    elif item.key_type in _TARGETS:
        _keep_before(group, part)
        group.targets.pop(part, None)
    elif item.key_type in _CURRENTS:
        group.currents.pop(part, None)
    elif item.key_type == _REGEX:
        _keep_regex(group, part, None)
        group.regexes.pop(part, None)
    elif item.key_type in _TOPICS:
        group.topics = None
    elif item.key_type == _TOPOLOGY:
        group.topology = None


def _asks(member: ModernMember) -> tuple[tuple[str, ...], str | None]:
    return member.topics, member.regex


def _keep_was(group: ModernGroup, member: ModernMember) -> None:
    if group.told is not None and member.member_id in group.told:
        group.was.setdefault(member.member_id, member)


def _keep_regex(group: ModernGroup, regex: str, topics: tuple[str, ...] | None) -> None:
    known = group.regexes.get(regex)
    was = None if known is None else known.topics
    if regex not in group.regexes_before:
        if was != topics:
            group.regexes_before[regex] = was
    elif topics is None and group.regexes_before[regex] is None:
        # It came and went since the decision. (Anyone in the group can write any number of them.)
        del group.regexes_before[regex]


def _keep_before(group: ModernGroup, member_id: str) -> None:
    if member_id not in group.before:
        target = group.targets.get(member_id)
        group.before[member_id] = None if target is None else target.partitions


def _decided(group: ModernGroup, item: GroupEpoch | TargetEpoch) -> ModernDecision:
    """The decision completed by a record; `group` is updated so that it becomes the previous one."""
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
    seen_assignor = item.seen_assignor if isinstance(item, TargetEpoch) else None
    unseen = 0
    if seen_assignor is not None and group.decided is not None:
        unseen = max(0, item.epoch - group.decided.epoch - 1)
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
        assignors=asked_assignors(group) if seen_assignor is None else (seen_assignor,),
        targets=targets,
        before=before,
        joined=joined,
        left=left,
        replaced=replaced,
        undescribed=tuple(sorted(group.members.keys() ^ group.targets.keys())),
        topics=group.topics,
        topology=group.topology,
        unseen=unseen,
    )
    decision = subscribing(decision, group)
    group.told = {name: member.instance_id for name, member in group.members.items()} if group.exact else None
    group.before = {}
    group.told_hash, group.asked = group.metadata_hash, decision.assignors
    group.was, group.regexes_before, group.topics_before = {}, {}, None
    group.away = {name: time for name, time in group.away.items() if name in group.members}
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
