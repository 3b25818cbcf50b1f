"""From the brokers' answers to the events to write: the pure part of a round. No Kafka client, no clock.

The answers come in as values, the events of the round go out, and a `Memory` is handed on to the next round. Nothing
here sends a request, so every rule can be tested with literals.

(Longer than other modules: the values that come in, with their fields explained, beside the rules for them.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streaming.config import Filters
from streaming.events import (
    EVENTS_VERSION,
    LONGEST_READER,
    MOST_READERS,
    Brokers,
    ClusterTopicEvent,
    Event,
    GroupEvent,
    GroupGone,
    RetentionSettings,
    RoundClosed,
    SeenGroupEvent,
    SeenGroupGone,
    TopicEvent,
    UnreadTimestamp,
)
from streaming.offsets_log import partition_for
from streaming.probe.holds import BlockedPartition, lasting, recalled_holds
from streaming.probe.idle import Reporting, Rest, is_its_turn, reporting, rest_after, rested
from streaming.probe.seen import LastReport, SeenGroup, SeenMembership, SeenRound, Telling, tell
from streaming.probe.turns import AskedTopics, TopicTurns

_EMPTY = "Empty"
"""State of a group without members."""

_REBALANCING = ("PreparingRebalance", "CompletingRebalance")
"""In these states coordinators do not report subscriptions."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its coordinator lists it.

    Attributes:
        group: Group id.
        node: Broker that listed it: its coordinator.
        state: In Kafka's words; None from brokers before 2.6, which do not list it.
        protocol_type: "consumer", "connect", ...; "" for a group that never had members; None when unknown.
        group_type: "classic", "consumer", "share", "streams"; None from brokers before 3.8 (KIP-848's ListGroups).
    """

    group: str
    node: int
    state: str | None
    protocol_type: str | None
    group_type: str | None


@dataclass(frozen=True, slots=True)
class Description:
    """A coordinator's description of a group's members.

    Attributes:
        state: In Kafka's words.
        protocol_type: As in `ListedGroup`.
        subscribed: Topics its members ask for.
        complete: False when that may not be all: coordinators report subscriptions in Stable only, and bytes that are
            not a subscription count for nothing.
        membership: The members to tell in a round that does not read the log; None in every other, and where the group
            has none, or rebalances.
    """

    state: str
    protocol_type: str
    subscribed: frozenset[str]
    complete: bool
    membership: SeenMembership | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic, queried once for all groups.

    Attributes:
        partitions: Partition count; None when it does not exist.
        topic_id: Kafka's printed id; None when the broker gives none.
        end: High watermark per partition; -1 where it is unknown.
        stable: Last stable offset per partition, never above `end`.
        start: Log start offset per partition.
        racks: Racks of the replicas per partition; None when no broker has a rack.
        retention: How long its records are kept; None when that is not known.
    """

    partitions: int | None
    topic_id: str | None = None
    end: tuple[int, ...] = ()
    stable: tuple[int, ...] = ()
    start: tuple[int, ...] = ()
    racks: tuple[tuple[str, ...], ...] | None = None
    retention: RetentionSettings | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What the next round must know of a closed one.

    Attributes:
        topics: Topics of each group in that round; its keys are the groups it had.
        holds: Per partition of the offsets log.
        rest: How long the groups have rested.
        unread: A hash of the timestamps of each group's oldest unread records, of groups that have any.
        turns: The topics of the cluster.
        told: What was last reported of groups whose log is not read.
        source: Source of the round that this is the memory of; None before the first.
        brokers: The brokers; None before the first, and from the round of a probe that did not report them.
        outdated: How many rounds in a row had an older answer about them; each probe counts from 0.
    """

    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    holds: tuple[BlockedPartition | None, ...] = ()
    rest: Rest = field(default_factory=Rest)
    unread: Mapping[str, int] = field(default_factory=dict)
    turns: TopicTurns = field(default_factory=TopicTurns)
    told: Mapping[str, LastReport] = field(default_factory=dict)
    source: str | None = None
    brokers: Brokers | None = None
    outdated: int = 0


@dataclass(frozen=True, slots=True)
class RoundHead:
    """The fields that all events of a round share.

    Attributes:
        cluster: Configured name.
        cluster_id: Kafka's own id.
        number: Offset of the opening record.
        time: Its append time.
        log: Position in each partition of the offsets log; empty in a round that does not read it.
        holds: Per partition of the offsets log.
    """

    cluster: str
    cluster_id: str | None
    number: int
    time: int
    log: tuple[int, ...]
    holds: tuple[BlockedPartition | None, ...]


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """Everything that a round saw of the watched groups.

    Attributes:
        groups: Watched groups by id.
        topics_of_groups: Topics to report per group, sorted.
        descriptions: Per group that was described.
        topics: Per topic; a topic that we may not see is missing.
        committed: Hash of each group's committed offsets; a group whose offsets we may not see is missing.
        unread: Timestamps of the oldest unread records by group and topic, as far as they are known.
        seen: Membership and committed offsets, in a round that does not read the log; empty in every other.
    """

    groups: Mapping[str, ListedGroup]
    topics_of_groups: Mapping[str, tuple[str, ...]]
    descriptions: Mapping[str, Description]
    topics: Mapping[str, Topic]
    committed: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, Mapping[str, tuple[UnreadTimestamp, ...]]] = field(default_factory=dict)
    seen: Mapping[str, SeenGroup] = field(default_factory=dict)


def topics_of_groups(
    groups: Iterable[str],
    descriptions: Mapping[str, Description],
    committed: Mapping[str, frozenset[str]],
    memory: Memory,
    filters: Filters,
) -> dict[str, tuple[str, ...]]:
    """Topics of each group: subscribed, committed, and remembered as long as some subscriptions are not reported.

    Without the memory a rebalance would make the topics of a group that has not committed yet vanish for a while.

    Returns:
        Watched topics per group, sorted; every group is a key.
    """
    found = {}
    for group in groups:
        topics = set(committed.get(group, ()))
        description = descriptions.get(group)
        if description is not None:
            topics |= description.subscribed
            if not description.complete:
                topics |= memory.topics.get(group, frozenset())
        found[group] = tuple(sorted(topic for topic in topics if filters.watches_topic(topic)))
    return found


def round_events(
    head: RoundHead,
    look: GroupsSeen,
    memory: Memory,
    after: Memory,
    filters: Filters,
    period_ms: int,
    seen: SeenRound | None = None,
) -> list[tuple[str, Event]]:
    """The events of one round, each with the group that keys it.

    Sorted by group id; a group's `GroupEvent` comes before its `TopicEvent`s and what is seen of it.
    Groups that the round before had and this one has not come as `GroupGone`. Groups that are gone, and idle groups
    that this round reports, come before the others.

    Args:
        head: What all events share.
        look: What the round saw.
        memory: What the closed round before left.
        after: What this round leaves, as `memory_after` gives it.
        filters: What is watched.
        period_ms: An idle group is reported once within it.
        seen: Membership and offsets to report, in a round that does not read the log.
    """
    resting: list[tuple[str, Event]] = []
    others: list[tuple[str, Event]] = []
    for group in sorted(look.groups.keys() | memory.topics.keys()):
        if group not in look.groups:
            resting.append((group, _gone(head, group, filters)))
            continue
        reported = reporting(group, memory.rest, after.rest, period_ms)
        if reported is not Reporting.NOT_AT_ALL:
            idle = reported is Reporting.AS_IDLE
            stretch = None if idle else rested(group, memory.rest)
            # The job remembers these, so a round sends them when they are news, and once in a period.
            unread = (
                look.unread.get(group, {})
                if idle
                or memory.unread.get(group) != after.unread.get(group)
                or is_its_turn(group, memory.rest, after.rest, period_ms)
                else {}
            )
            telling = seen.telling.get(group, Telling()) if seen is not None else None
            events = _events_of_group(head, look, memory, group, stretch, unread, telling, idle=idle)
            (resting if idle else others).extend((group, event) for event in events)
    return resting + others


def _events_of_group(
    head: RoundHead,
    look: GroupsSeen,
    memory: Memory,
    group: str,
    stretch: tuple[int, int] | None,
    unread: Mapping[str, tuple[UnreadTimestamp, ...]],
    telling: Telling | None,
    *,
    idle: bool,
) -> list[Event]:
    listed, description = look.groups[group], look.descriptions.get(group)
    topics = [topic for topic in look.topics_of_groups[group] if topic in look.topics]
    of_topics = [_topic_event(head, group, topic, look.topics[topic], unread.get(topic, ())) for topic in topics]
    if telling is not None:
        return [
            SeenGroupEvent(
                v=EVENTS_VERSION,
                cluster=head.cluster,
                round=head.number,
                time=head.time,
                group=group,
                log_partition=-1,
                log_position=-1,
                topics=len(topics),
                state=description.state if description else listed.state,
                protocol_type=(description.protocol_type if description else "") or listed.protocol_type,
                group_type=listed.group_type,
                cluster_id=head.cluster_id,
                idle=idle,
                rested=stretch,
                seen=len(telling.events),
                looked=telling.looked,
                absent_at=None if group in memory.topics or memory.rest.time < 0 else memory.rest.time,
            ),
            *of_topics,
            *telling.events,
        ]
    partition = partition_for(group, len(head.log))
    hold = lasting(head.holds[partition])
    holder = hold.holder if hold is not None else None
    first = GroupEvent(
        v=EVENTS_VERSION,
        cluster=head.cluster,
        round=head.number,
        time=head.time,
        group=group,
        log_partition=partition,
        log_position=head.log[partition],
        topics=len(topics),
        # Requested after the listing, and together with the subscriptions.
        state=description.state if description else listed.state,
        protocol_type=(description.protocol_type if description else "") or listed.protocol_type,
        group_type=listed.group_type,
        held_since=hold.since if hold is not None else None,
        cluster_id=head.cluster_id,
        held_by_producer=holder.producer_id if holder is not None else None,
        held_by=holder.transactional_id if holder is not None else None,
        idle=idle,
        rested=stretch,
    )
    return [first, *of_topics]


def _topic_event(
    head: RoundHead, group: str, topic: str, seen: Topic, unread: tuple[UnreadTimestamp, ...]
) -> TopicEvent:
    return TopicEvent(
        v=EVENTS_VERSION,
        cluster=head.cluster,
        round=head.number,
        group=group,
        topic=topic,
        partitions=seen.partitions,
        topic_id=seen.topic_id,
        end=seen.end,
        stable=seen.stable,
        start=seen.start,
        racks=seen.racks,
        retention=seen.retention,
        unread=unread,
    )


def seen_round(head: RoundHead, look: GroupsSeen, memory: Memory, after: Memory, period_ms: int) -> SeenRound:
    """What a round that does not read the log reports of membership and committed offsets.

    Args:
        head: What all events share.
        look: What the round saw.
        memory: What the closed round before left.
        after: What this round leaves, as `memory_after` gives it.
        period_ms: Everything is reported once within it.
    """
    reports = {group: reporting(group, memory.rest, after.rest, period_ms) for group in look.groups}
    whole = [
        group
        for group, report in reports.items()
        if report is Reporting.AS_IDLE or is_its_turn(group, memory.rest, after.rest, period_ms)
    ]
    silent = [group for group, report in reports.items() if report is Reporting.NOT_AT_ALL]
    return tell(head.cluster, head.number, look.seen, memory.told, whole, silent)


def _gone(head: RoundHead, group: str, filters: Filters) -> GroupGone:
    reason = "deleted" if filters.watches_group(group) else "filtered"
    if not head.log:
        return SeenGroupGone(EVENTS_VERSION, head.cluster, head.number, head.time, group, -1, -1, reason)
    partition = partition_for(group, len(head.log))
    return GroupGone(
        v=EVENTS_VERSION,
        cluster=head.cluster,
        round=head.number,
        time=head.time,
        group=group,
        log_partition=partition,
        log_position=head.log[partition],
        reason=reason,
    )


def cluster_topic_events(
    head: RoundHead, asked: AskedTopics, ended: Mapping[str, str], look: GroupsSeen, memory: Memory
) -> list[tuple[str, ClusterTopicEvent]]:
    """The events of the cluster's topics, each with the topic that keys it, sorted by topic.

    Args:
        head: What all events share.
        asked: What the round has learned of them.
        ended: Topics that are gone with this round, with the reason.
        look: What the round saw of the groups: who reads them.
        memory: What the closed round before left.
    """
    readers = _readers(look, asked.topics)
    hidden = asked.hidden or _unknown_readers(look, memory) if asked.topics else None
    there = [
        ClusterTopicEvent(
            v=EVENTS_VERSION,
            cluster=head.cluster,
            round=head.number,
            time=head.time,
            topic=name,
            topic_id=topic.topic_id,
            end=topic.end,
            start=topic.start,
            sizes=topic.sizes,
            leaders=topic.leaders,
            unsized=topic.unsized,
            groups=len(readers[name]),
            readers=tuple([group[:LONGEST_READER] for group in sorted(readers[name])[:MOST_READERS]]),
            hidden=hidden,
        )
        for name, topic in asked.topics.items()
        if topic.absent is None
    ]
    gone = [
        ClusterTopicEvent(EVENTS_VERSION, head.cluster, head.number, head.time, name, gone=reason)
        for name, reason in ended.items()
    ]
    return [(event.topic, event) for event in sorted(there + gone, key=lambda event: event.topic)]


def _readers(look: GroupsSeen, topics: Iterable[str]) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {topic: [] for topic in topics}
    if readers:
        for group, of_group in look.topics_of_groups.items():
            for topic in of_group:
                if topic in readers:
                    readers[topic].append(group)
    return readers


def _unknown_readers(look: GroupsSeen, memory: Memory) -> str | None:
    """Why groups may read topics that this round does not know of; None when it knows all topics of all groups."""
    found = None
    for name, group in look.groups.items():
        if group.group_type == "share":
            return "share_groups"
        description = look.descriptions.get(name)
        if name not in look.committed or not (group.state == _EMPTY or _is_known(description, name in memory.topics)):
            found = "undescribed"
    return found


def _is_known(description: Description | None, is_remembered: bool) -> bool:
    """Whether a group's subscriptions are known: from this round, or for as long as it rebalances from one before."""
    if description is None:
        return False
    return description.complete or (is_remembered and description.state in _REBALANCING)


def memory_after(head: RoundHead, look: GroupsSeen, memory: Memory, turns: TopicTurns | None = None) -> Memory:
    """What the next round must know, once this one has closed.

    Args:
        head: Head of the round.
        look: What it saw.
        memory: What the closed round before left.
        turns: The turns of the cluster's topics after this round; None for none.
    """
    unread = {group: hash(tuple(of_group.items())) for group, of_group in look.unread.items()}
    return Memory(
        {group: frozenset(look.topics_of_groups[group]) for group in look.groups},
        head.holds,
        rest_after(memory.rest, _marks(head, look, unread), head.time),
        unread,
        turns or TopicTurns(),
    )


def _marks(head: RoundHead, look: GroupsSeen, unread: Mapping[str, int]) -> dict[str, int]:
    """Hashes of groups without members; they live no longer than the process, so Python's own hashes will do."""
    of_topics = {name: hash(topic) for name, topic in look.topics.items()}
    holds = [(hold.since, hold.holder) if hold is not None else None for hold in map(lasting, head.holds)]
    # Most of the time nothing is held; then the hash for each group's log partition (4 us) can be saved.
    held = any(holds)
    marks = {}
    for name, group in look.groups.items():
        description = look.descriptions.get(name)
        if (description.state if description else group.state) != _EMPTY:
            continue
        topics = tuple([(topic, of_topics.get(topic)) for topic in look.topics_of_groups[name]])
        hold = holds[partition_for(name, len(holds))] if held else None
        of_group = look.committed.get(name), unread.get(name)
        marks[name] = hash((group.protocol_type, group.group_type, topics, of_group, hold))
    return marks


def recall(closed: RoundClosed, events: Iterable[Event], resting: Iterable[Event] = ()) -> Memory:
    """The memory of a closed round, from its records: what `memory_after` gave to the probe that wrote them.

    How long groups have rested is not recorded: a new probe reports them all until it has seen it itself.

    Args:
        closed: The closing record.
        events: All events of its round.
        resting: Events of idle groups, of groups that are gone and of the cluster's topics from the rounds before
            (`RoundClosed.resting`), the oldest first, far enough back to contain every group and topic without events
            in the round.
    """
    topics: dict[str, set[str]] = {}
    told: dict[str, int] = {}
    for event in resting:
        if isinstance(event, ClusterTopicEvent):
            _recall_topic(told, event)
        elif isinstance(event, GroupEvent):
            topics[event.group] = set()
        elif isinstance(event, GroupGone):
            topics.pop(event.group, None)
        elif isinstance(event, TopicEvent) and event.group in topics:
            topics[event.group].add(event.topic)
    since: dict[int, int] = {}
    for event in events:
        if isinstance(event, ClusterTopicEvent):
            _recall_topic(told, event)
        elif isinstance(event, GroupEvent):
            topics[event.group] = set()
            if event.held_since is not None:
                since[event.log_partition] = event.held_since
        elif isinstance(event, TopicEvent):
            topics.setdefault(event.group, set()).add(event.topic)
        elif isinstance(event, GroupGone):
            topics.pop(event.group, None)
    recalled = {group: frozenset(names) for group, names in topics.items()}
    return Memory(
        recalled,
        recalled_holds(closed, since),
        turns=TopicTurns(told=told),
        source=closed.source,
        brokers=closed.brokers,
    )


def _recall_topic(told: dict[str, int], event: ClusterTopicEvent) -> None:
    if event.gone is None:
        told[event.topic] = event.time
    else:
        told.pop(event.topic, None)
