"""What a round saw of a Kafka cluster's groups, and the fields that all its events share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from streaming.probe.kafka.holds import BlockedPartition
from streaming.probe.kafka.seen import GroupMembers, SeenGroup
from streaming.records import Configured, SeenConnectors, SeenShares, TopicObservation, UnreadTimestamp

EMPTY: Final = "Empty"
"""State of a group without members, in Kafka's words."""

STABLE: Final = "Stable"
"""State of a group whose members have their assignment."""


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
        state: In Kafka's words; None as in `ListedGroup`, where it failed.
        protocol_type: As in `ListedGroup`.
        subscribed: Topics its members ask for.
        complete: False when that may not be all: coordinators report subscriptions in Stable only, and bytes that are
            not a subscription count for nothing.
        membership: The members to tell in a round that does not read the log; None in every other, and where the group
            has none, or rebalances.
        failed: The coordinator failed to describe it: this is only what it listed.
    """

    state: str | None
    protocol_type: str | None
    subscribed: frozenset[str]
    complete: bool
    membership: GroupMembers | None = None
    failed: bool = False


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
        topics: Per topic, without the timestamps of any group; a topic that we may not see is missing.
        committed: Hash of each group's committed offsets, or deliveries; a group whose offsets we may not see is
            missing.
        unread: Timestamps of the oldest unread records by group, topic and partition, as far as they are known.
        seen: Membership and committed offsets, in a round that does not read the log; empty in every other.
        calm: Groups with members, all known, that have read all there is, and of whose members the log has told nothing
            since the round before.
        changed: Groups of whose members the log has told something since the round before.
        shares: Deliveries of share groups, as far as they are known in this round.
        share_log: How far each partition of `__share_group_state` was read; empty where it is not read.
        connectors: What is configured for Connect groups, as far as it is known in this round.
    """

    groups: Mapping[str, ListedGroup]
    topics_of_groups: Mapping[str, tuple[str, ...]]
    descriptions: Mapping[str, Description]
    topics: Mapping[str, TopicObservation]
    committed: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, Mapping[str, dict[int, UnreadTimestamp]]] = field(default_factory=dict)
    seen: Mapping[str, SeenGroup] = field(default_factory=dict)
    calm: Collection[str] = ()
    changed: Collection[str] = ()
    shares: Mapping[str, SeenShares] = field(default_factory=dict)
    share_log: tuple[int, ...] = ()
    connectors: Mapping[str, SeenConnectors] = field(default_factory=dict)
