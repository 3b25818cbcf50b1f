"""A modern group as its records stand, one of its decisions, and what follows from either alone.

`replay.py` changes a group record by record, and says when it has decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from streaming.groups.modern.pauses import Pauses
from streaming.groups.rows import ChurnRow
from streaming.groups.verdicts import StandingVerdict
from streaming.records import (
    CurrentAssignment,
    IdPartitions,
    KnownTopics,
    MembershipRecord,
    ModernMember,
    ResolvedRegex,
    ShareTopics,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
)

STABLE = 0
"""`MemberState.STABLE`: the member owns exactly its target, if it has reached the target's epoch."""


class Before(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What a group was at its newest decision, where that cannot be seen in the group any more.

    Attributes:
        members: Instance id by member id; None before the first decision, or if that one was not exact.
        targets: For each member whose target has changed since, the target then; None as a value if it had none.
        resubscribed: Ids of members that have subscribed to something else since, or whose regular expression matches
            other topics now.
        new_metadata: The metadata of the subscribed topics has changed since: what the log has of it up to Kafka 4.0,
            later its hash.
        asked: Server assignors that members requested.
        leader_epoch: Leader epoch of the decision; -1 when not known.
        standby: Standby tasks that they had then, if any.
        settings: The assignor's settings of a streams group, as of `ModernGroup.settings`.
    """

    members: dict[str, str | None] | None = None
    targets: dict[str, IdPartitions | None] = {}
    resubscribed: dict[str, None] = {}
    new_metadata: bool = False
    asked: tuple[str, ...] = ()
    leader_epoch: int = -1
    standby: dict[str, IdPartitions | None] = {}
    settings: dict[str, str] = {}


class ModernGroup(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """One modern group, according to the log. Changed in place by `replay`; packed as it is.

    Attributes:
        group_type: "consumer", "share" or "streams".
        epoch: Group epoch; -1 before the first.
        decided: The newest target epoch record; None before the first.
        members: Member metadata by member id, in the order in which they joined.
        targets: Target assignment by member id.
        currents: Current assignment by member id.
        regexes: Resolved regular expressions by expression.
        topics: Names and counts by topic id, if the log has them (to Kafka 4.0; share groups); None otherwise.
        topology: Topology of a streams group; None otherwise.
        exact: No record that the log ever held is missing.
        metadata_hash: Hash of the subscribed topics' metadata (`GroupEpoch`); 0 when not recorded.
        before: The group at its newest decision; another object after each decision.
        validated_topology: Streams groups only: as in `GroupEpoch`.
        settings: Streams groups only: the assignor's settings (`GroupEpoch.assignment_configs`).
        first_epoch: The epoch with which the first member founded a group with a topology, if that record is there, so
            that no later one can be missing; -1 otherwise.
    """

    group_type: str
    epoch: int = -1
    decided: TargetEpoch | None = None
    members: dict[str, ModernMember] = {}
    targets: dict[str, TargetAssignment] = {}
    currents: dict[str, CurrentAssignment] = {}
    regexes: dict[str, ResolvedRegex] = {}
    topics: KnownTopics | ShareTopics | None = None
    topology: StreamsTopology | None = None
    exact: bool = False
    metadata_hash: int = 0
    before: Before = msgspec.field(default_factory=Before)
    validated_topology: int = -1
    settings: dict[str, str] = {}
    first_epoch: int = -1

    def forget_before(self) -> None:
        """Note that records may be missing: the next target is not exact, and what came before it is unknown."""
        self.exact, self.first_epoch = False, -1
        self.before = msgspec.structs.replace(self.before, members=None, targets={}, resubscribed={}, standby={})


class DecidedTasks(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What only a streams group's decision has, beside its active tasks.

    Attributes:
        standby: Target standby tasks by member id.
        warmup: Target warm-up tasks by member id.
        before: The previous decision's standby tasks by member id; None if unknown.
        owned: The active and the standby tasks that each member owned when the target was made, without those that it
            had been asked to give up: what the assignor goes by since Kafka 4.4.
        settings: The assignor's settings; {} up to Kafka 4.1, which does not record them.
        is_ready: The coordinator had found all topics of the topology, with the right partition counts; None where that
            is not recorded. If not, it calls no assignor, and nobody gets a task.
    """

    standby: dict[str, IdPartitions]
    warmup: dict[str, IdPartitions]
    before: dict[str, IdPartitions] | None
    owned: dict[str, tuple[IdPartitions, IdPartitions]]
    settings: dict[str, str]
    is_ready: bool | None


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
            was not resolved. See `topics_of`.
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
        unseen: Epochs between a decision that was only seen and the previous look, whose targets are not known.
        topic_lists: The different lists of topic names that members subscribe to, each sorted, including the matches of
            regular expressions at the time. A hundred members may share one of a thousand topics.
        tasks: What only streams groups have; None for other types.
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
    subscriptions: dict[str, int | None]
    assignors: tuple[str, ...]
    targets: dict[str, IdPartitions]
    before: dict[str, IdPartitions] | None
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    replaced: tuple[tuple[str, str], ...]
    undescribed: tuple[str, ...]
    topics: KnownTopics | ShareTopics | None = None
    incarnation: int = -1
    carried_over: bool = False
    topology: StreamsTopology | None = None
    unseen: int = 0
    topic_lists: tuple[tuple[str, ...], ...] = ()
    tasks: DecidedTasks | None = None

    def topics_of(self, member_id: str) -> tuple[str, ...] | None:
        """Topics that a member subscribes to, sorted; None if its regular expression was not resolved."""
        place = self.subscriptions.get(member_id)
        if place is None:
            return None
        return self.topic_lists[place]

    def different_subscriptions(self) -> Iterable[tuple[str, ...] | None]:
        """What members subscribe to, each list once."""
        return dict.fromkeys(map(self.topics_of, self.subscriptions))


def state_of(group: ModernGroup, stable: int = STABLE) -> str:
    """The state of a group with members in Kafka's words, derived as the coordinator does (`maybeUpdateGroupState`).

    Returns:
        "Assigning", "Reconciling" or "Stable".
    """
    if group.decided is None or group.epoch > group.decided.epoch:
        return "Assigning"
    return "Reconciling" if behind(group, stable) else "Stable"


def behind(group: ModernGroup, stable: int = STABLE) -> tuple[str, ...]:
    """Ids of the members that have not reached the newest target, for no longer than since the time of `decided`.

    Args:
        group: The group.
        stable: The number by which its records say that a member owns its target.
    """
    if group.decided is None:
        return ()
    epoch, currents = group.decided.epoch, group.currents
    there = {name for name, current in currents.items() if current.state == stable and current.epoch == epoch}
    return tuple([member_id for member_id in group.members if member_id not in there])


def owned_now(group: ModernGroup, member_id: str) -> IdPartitions:
    """What a member owns now, with what it must still give up."""
    current = group.currents.get(member_id)
    if current is None:
        return ()
    return current.held


def newest_targets(group: ModernGroup) -> dict[str, IdPartitions]:
    """Targets by member id at the newest decision, without changes written since."""
    before = group.before.targets
    targets = {name: target.partitions for name, target in group.targets.items() if name not in before}
    return targets | {name: partitions for name, partitions in before.items() if partitions is not None}


def initialized(topics: KnownTopics | ShareTopics | None) -> dict[str, frozenset[int]] | None:
    """Partitions by topic id that a share group's assignor may assign; None if an older release read the record."""
    if topics is None:
        return {}
    if not isinstance(topics, ShareTopics):
        return None
    return {topic_id: frozenset(numbers) for topic_id, numbers in topics.initialized if numbers}


def subscribed(group: ModernGroup, member: ModernMember) -> frozenset[str] | None:
    """Names of the topics that a member subscribes to; None if its regular expression is not resolved yet."""
    if member.regex is None:
        return frozenset(member.topics)
    resolved = group.regexes.get(member.regex)
    if resolved is None:
        return None
    return frozenset(member.topics) | frozenset(resolved.topics)


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
    subscriptions: dict[str, int | None] = {}
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


def assignor_of(assignors: tuple[str, ...]) -> str | None:
    """The server assignor that members request; None if it is the broker's default, or if it is ambiguous."""
    if len(assignors) == 1:
        return assignors[0]
    return None


class ModernState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The modern part of a group's state; all defaults in a classic group.

    Attributes:
        lives: The group is of this kind now: the log has a record of its epoch.
        ended: Log offset of the last tombstone of its metadata record; None if there was none.
        group: The group according to the log; None for a classic group.
        epoch: Epoch of its newest decision; None before the first.
        incarnation: Its incarnation; None before the first decision.
        upgraded: It has just been upgraded from a classic group and has no decision yet.
        waiting: Decisions that no round has judged yet, oldest first.
        unnamed: How many of these, the newest, have no member rows yet: they wait for a round to name the topics.
        shown: The decision whose member rows were last written, reduced to what closing rows need.
        verdict: Verdict on its newest judged decision; None before the first.
        balance: Imbalance of its newest judged decision, and the lowest possible; None before the first.
        cost: Partitions of a consumer group between two owners; None before the first current assignment.
        unreadable: Log offsets of records that cannot be decoded, by the row of the group's table that each sets
            (`row_of`): what the group is now is not known until each was set again, or removed.
    """

    lives: bool = False
    ended: int | None = None
    group: ModernGroup | None = None
    epoch: int | None = None
    incarnation: int | None = None
    upgraded: bool = False
    waiting: list[ModernDecision] = []
    unnamed: int = 0
    shown: ModernDecision | None = None
    verdict: StandingVerdict | None = None
    balance: tuple[float | None, float | None] | None = None
    cost: Pauses | None = None
    unreadable: dict[str, int] = {}

    @property
    def is_void(self) -> bool:
        """Whether it holds nothing that a later row could need."""
        return not (self.lives or self.group or self.waiting or self.shown or self.unreadable)

    @property
    def is_readable(self) -> bool:
        """Whether the newest record of each member, target and assignment could be decoded."""
        return not self.unreadable

    def next_revision(self, *, at_round: bool, following: MembershipRecord | None) -> ChurnRow | None:  # noqa: ARG002
        """The newest decision's row, once each partition has its next owner and a new commit; None otherwise."""
        if self.cost is not None:
            return self.cost.next_revision()
        return None

    def forget_before(self) -> None:
        """Note that records may be missing from here on."""
        self.cost = None
        if self.group is not None:
            self.group.forget_before()

    def move(self, moved: Callable[[int], int]) -> None:
        """Correct times of rounds: it has none."""
