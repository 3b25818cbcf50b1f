"""What a round saw of a Kafka cluster's groups, and the fields that all its events share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from streaming.events import RetentionSettings, UnreadTimestamp
from streaming.probe.kafka.holds import BlockedPartition
from streaming.probe.kafka.seen import SeenGroup, SeenMembership
from streaming.records import Configured

EMPTY: Final = "Empty"
"""State of a group without members, in Kafka's words."""


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
class RoundHead:
    """The fields that all events of a round share.

    Attributes:
        cluster: Configured name.
        cluster_id: Kafka's own id.
        number: Offset of the opening record.
        time: Its append time.
        log: Position in each partition of the offsets log; empty in a round that does not read it.
        holds: Per partition of the offsets log.
        configured: What the settings say of a group.
    """

    cluster: str
    cluster_id: str | None
    number: int
    time: int
    log: tuple[int, ...]
    holds: tuple[BlockedPartition | None, ...]
    configured: Callable[[str], Configured | None] = dict[str, Configured]().get


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
