"""What the log tells of a modern group, as the core takes it in: consumer (KIP-848), share and streams groups.

"Modern" is Kafka's own word for groups whose assignment the coordinator computes (the package
`coordinator.group.modern`). Their log is not one record a decision, as a classic group's is, but a table of rows
that change one by one, and one of them closes a decision:

    member metadata (5, 10, 19), resolved regex (16), group epoch (3, 11, 17), changed targets (7, 13, 21)
    target epoch (6, 12, 20): the decision stands
    current assignments (8, 14, 22), member by member, as each gives up and takes over

The target of a member that keeps its own is not written again; a member that leaves gives three tombstones, then
an epoch. So none of these inputs merges with another: every record becomes one input, in log order, and only the
group's state machine (`consumer_group.py`) may say that something happened, at the records that close it. The
three kinds of groups share the inputs, because their records have the same shapes; what a kind lacks has a default.

Partitions are by topic id as Kafka prints it, never by name: the log has names in types 4, 9 and 15 alone, and from
4.1 a consumer group has none of these any more. Rounds bring the names. Streams groups have subtopology ids there.
Times are ms since the epoch, UTC. Packed like the other inputs: fields are only ever appended, with defaults.
"""

from __future__ import annotations

import msgspec

__all__ = [
    "CONSUMER",
    "SHARE",
    "STREAMS",
    "CurrentAssignment",
    "GroupEpoch",
    "IdPartitions",
    "KnownTopics",
    "ModernInput",
    "ModernMember",
    "Removed",
    "ResolvedRegex",
    "StreamsTopology",
    "TargetAssignment",
    "TargetEpoch",
]

CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"

IdPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic id (of streams groups by subtopology), in record order: ((id, (partition, ...)), ...)."""


class _Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What every record has.

    Attributes:
        record: Log offset.
        record_time: Record timestamp, ms.
        group_type: `CONSUMER`, `SHARE` or `STREAMS`.
        log_partition: Partition of the offsets log; -1 when not known.
    """

    record: int
    record_time: int
    group_type: str
    log_partition: int

    @property
    def position(self) -> int:
        """Log offset that orders this input."""
        return self.record


class GroupEpoch(_Record, frozen=True, array_like=True, tag="ge"):
    """The group's epoch was bumped: members, subscriptions or topics changed (types 3, 11, 17).

    Attributes:
        epoch: Group epoch.
        metadata_hash: Hash of the subscribed topics' metadata (4.1+); 0 when not recorded.
    """

    epoch: int
    metadata_hash: int = 0


class ModernMember(_Record, frozen=True, array_like=True, tag="gm"):
    """A member and what it asks for (types 5, 10, 19).

    Attributes:
        member_id: Member id.
        instance_id: `group.instance.id`; None for a dynamic member, and in share groups.
        rack: Rack; None when not told.
        client_id: Client id.
        client_host: Host as the broker recorded it.
        topics: Subscribed topic names in record order (the broker sorts them); () in streams groups.
        regex: Subscribed regular expression; None when there is none.
        rebalance_timeout: ms; -1 in share groups.
        assignor: Server assignor that it asks for; None when it leaves the choice.
        classic_protocols: Protocols that a member of the classic protocol supports; None for one of the new.
        process_id: Of streams groups; None otherwise.
        topology_epoch: Of streams groups; -1 otherwise.
    """

    member_id: str
    instance_id: str | None
    rack: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None = None
    rebalance_timeout: int = -1
    assignor: str | None = None
    classic_protocols: tuple[str, ...] | None = None
    process_id: str | None = None
    topology_epoch: int = -1


class TargetEpoch(_Record, frozen=True, array_like=True, tag="gt"):
    """The target assignment of an epoch stands (types 6, 12, 20): the record that closes a decision.

    Attributes:
        epoch: Group epoch at which the target was computed.
        time: When, ms (4.3+); 0 when not recorded.
    """

    epoch: int
    time: int = 0


class TargetAssignment(_Record, frozen=True, array_like=True, tag="ga"):
    """What the coordinator wants a member to own (types 7, 13, 21).

    Attributes:
        member_id: Member id.
        partitions: What it is to own; in streams groups its active tasks.
        standby: Standby tasks of streams groups.
        warmup: Warm-up tasks of streams groups.
    """

    member_id: str
    partitions: IdPartitions
    standby: IdPartitions = ()
    warmup: IdPartitions = ()


class CurrentAssignment(_Record, frozen=True, array_like=True, tag="gc"):
    """What a member owns (types 8, 14, 22).

    Attributes:
        member_id: Member id.
        epoch: Epoch that the member has reached; -2 for a static member that is away and expected back.
        previous_epoch: The one before.
        state: As written: 0 stable, 1 unrevoked partitions, 2 unreleased partitions.
        partitions: What it owns; in streams groups its active tasks.
        revoking: What it still owns and has to give up; () in share groups.
        standby: Standby tasks of streams groups.
        warmup: Warm-up tasks of streams groups.
    """

    member_id: str
    epoch: int
    previous_epoch: int
    state: int
    partitions: IdPartitions
    revoking: IdPartitions = ()
    standby: IdPartitions = ()
    warmup: IdPartitions = ()


class ResolvedRegex(_Record, frozen=True, array_like=True, tag="gx"):
    """The topics that a regular expression stands for (type 16).

    Attributes:
        regex: The expression, as members subscribe to it.
        topics: Topic names, sorted by the broker.
        image_version: Version of the metadata it was resolved against.
        time: When, ms.
    """

    regex: str
    topics: tuple[str, ...]
    image_version: int
    time: int


class KnownTopics(_Record, frozen=True, array_like=True, tag="gn"):
    """Topics by id (types 4 and 9 up to 4.0; 15: a share group's initializing and initialized ones).

    Attributes:
        topics: (id, name, partition count or None where the record has none), in record order.
    """

    topics: tuple[tuple[str, str, int | None], ...]


class StreamsTopology(_Record, frozen=True, array_like=True, tag="gy"):
    """What a streams group reads (type 23).

    Attributes:
        epoch: Topology epoch.
        subtopologies: (id, source topics, source regexes, repartition topics that it reads), in record order.
    """

    epoch: int
    subtopologies: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]


class Removed(_Record, frozen=True, array_like=True, tag="gr"):
    """A tombstone of one of these types.

    Attributes:
        key_type: Key type.
        part: Member id, or regular expression of type 16; None where the key has neither.
    """

    key_type: int
    part: str | None = None


ModernInput = (
    GroupEpoch
    | ModernMember
    | TargetEpoch
    | TargetAssignment
    | CurrentAssignment
    | ResolvedRegex
    | KnownTopics
    | StreamsTopology
    | Removed
)
