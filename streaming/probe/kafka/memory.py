"""What a round leaves to the next: as it closes, and read back from its records by a new probe. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from streaming.config import Filters
from streaming.events import ClusterTopicEvent, Event, GroupEvent
from streaming.offsets_log import partition_for
from streaming.probe.idle import STEADY_ROUNDS, Rest, rest_after
from streaming.probe.kafka.cluster_topics import TopicTurns
from streaming.probe.kafka.holds import BlockedPartition, lasting, recalled_holds
from streaming.probe.kafka.look import EMPTY, Description, GroupsSeen, LastReport, RoundHead
from streaming.records import Brokers, RoundClosed, UnreadTimestamp

_ENCODER = msgspec.msgpack.Encoder()

_NONE: Final[frozenset[str]] = frozenset()

HashedUnread: TypeAlias = tuple[Mapping[str, dict[int, UnreadTimestamp]], int]
"""Timestamps by topic and partition, and a hash of them."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the next round must know of a closed one.

    Attributes:
        topics: Topics of each group in that round; its keys are the groups it had.
        holds: Per partition of the offsets log.
        rest: How long the groups have rested.
        steady: Of groups with members that may rest: a hash of what the group is, but for offsets, and for how many
            rounds in a row it has been so.
        unread: The timestamps of each group's oldest unread records, of groups that have any, and their hash.
        turns: The topics of the cluster.
        told: What was last reported of groups whose log is not read.
        source: Source of the round that this is the memory of; None before the first.
        brokers: The brokers; None before the first.
        outdated: How many rounds in a row had an older answer about them; each probe counts from 0.
        time: Time of that round, ms; -1 before the first.
        share_log: How far it has read each partition of `__share_group_state`; empty where it did not.
    """

    topics: Mapping[str, Collection[str]] = field(default_factory=dict)
    holds: tuple[BlockedPartition | None, ...] = ()
    rest: Rest = field(default_factory=Rest)
    steady: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unread: Mapping[str, HashedUnread] = field(default_factory=dict)
    turns: TopicTurns = field(default_factory=TopicTurns)
    told: Mapping[str, LastReport] = field(default_factory=dict)
    source: str | None = None
    brokers: Brokers | None = None
    outdated: int = 0
    time: int = -1
    share_log: tuple[int, ...] = ()


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
    # Most groups have the topics of some other group, in every round.
    watched = lru_cache(maxsize=None)(partial(_watched, filters))
    found = {}
    for group in groups:
        topics = committed.get(group, _NONE)
        description = descriptions.get(group)
        if description is not None:
            topics |= description.subscribed
            if not description.complete:
                topics |= frozenset(memory.topics.get(group, ()))
        found[group] = watched(topics)
    return found


def _watched(filters: Filters, topics: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(topic for topic in topics if filters.watches_topic(topic)))


def memory_after(head: RoundHead, look: GroupsSeen, memory: Memory, turns: TopicTurns | None = None) -> Memory:
    """What the next round must know, once this one has closed.

    Args:
        head: Head of the round.
        look: What it saw.
        memory: What the closed round before left.
        turns: The turns of the cluster's topics after this round; None for none.
    """
    unread = {group: _hashed(of_group, memory.unread.get(group)) for group, of_group in look.unread.items()}
    steady = _steady(head, look, memory)
    return Memory(
        look.topics_of_groups,
        head.holds,
        rest_after(memory.rest, _marks(head, look, unread, steady), head.time),
        steady,
        unread,
        turns or TopicTurns(),
        time=head.time,
        share_log=look.share_log,
    )


def _hashed(unread: Mapping[str, dict[int, UnreadTimestamp]], before: HashedUnread | None) -> HashedUnread:
    # Most have the object of the round before: nothing of these groups has changed.
    if before is not None and before[0] is unread:
        return before
    return unread, hash(_ENCODER.encode(unread))


def _steady(head: RoundHead, look: GroupsSeen, memory: Memory) -> dict[str, tuple[int, int]]:
    partitions = {name: topic.partitions for name, topic in look.topics.items()}
    steady = {}
    for name in look.calm:
        topics = tuple([(topic, partitions.get(topic)) for topic in look.topics_of_groups[name]])
        what = hash((look.groups[name].group_type, look.descriptions[name].subscribed, topics, head.configured(name)))
        before, rounds = memory.steady.get(name, (what, -1))
        steady[name] = what, rounds + 1 if before == what else 0
    return steady


def _marks(
    head: RoundHead, look: GroupsSeen, unread: Mapping[str, HashedUnread], steady: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """Hashes of groups that may rest; they live no longer than the process, so Python's own hashes will do."""
    of_each = {name: hash(_ENCODER.encode(topic)) for name, topic in look.topics.items()}
    of_topics = {
        names: hash(tuple([(name, of_each.get(name)) for name in names]))
        for names in set(look.topics_of_groups.values())
    }
    holds = [
        (hold.since, hold.producer_id, hold.transactional_id) if hold is not None else None
        for hold in map(lasting, head.holds)
    ]
    # Most of the time nothing is held; then the hash for each group's log partition (4 us) can be saved.
    held = any(holds)
    marks = {}
    for name, group in look.groups.items():
        description = look.descriptions.get(name)
        state = description.state if description else group.state
        _, rounds = steady.get(name, (0, 0))
        # Members may have come and gone between two rounds that both see the group empty.
        if name in look.changed or (state != EMPTY and rounds < STEADY_ROUNDS):
            continue
        topics = of_topics[look.topics_of_groups[name]]
        hold = holds[partition_for(name, len(holds), head.cluster_id)] if held else None
        _, of_unread = unread.get(name, (None, 0))
        of_group = look.committed.get(name), of_unread
        marks[name] = hash((state, group.protocol_type, group.group_type, topics, of_group, hold))
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
    topics: dict[str, tuple[str, ...]] = {}
    told: dict[str, int] = {}
    for event in chain(resting, events):
        if isinstance(event, ClusterTopicEvent):
            if event.saw.gone is None:
                told[event.key] = event.saw.time
            else:
                told.pop(event.key, None)
        elif isinstance(event, GroupEvent):
            if event.saw.gone is None:
                topics[event.key] = tuple([topic.topic for topic in event.saw.topics])
            else:
                topics.pop(event.key, None)
    return Memory(
        topics,
        recalled_holds(closed),
        turns=TopicTurns(told=told),
        source=closed.source,
        brokers=closed.brokers,
        time=closed.time,
        share_log=closed.share_log,
    )
