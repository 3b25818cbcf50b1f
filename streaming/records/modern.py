"""The records of a modern group in the log as inputs of the core: consumer (KIP-848), share and streams groups.

"Modern" is Kafka's own word for groups whose assignment the coordinator computes (the package
`coordinator.group.modern`). A classic group has one log record per decision; a modern group has a table of rows that
change one by one, and one of them closes a decision:

    member metadata (5, 10, 19), resolved regex (16), group epoch (3, 11, 17), changed targets (7, 13, 21)
    target epoch (6, 12, 20): closes the decision
    current assignments (8, 14, 22), one member at a time, as each gives up and takes over partitions

The target of a member that keeps its partitions is not written again; a member that leaves causes three tombstones,
then an epoch. So these inputs never merge: every record becomes one input, in log order, and only the group's state
machine (`streaming/groups/modern/replay.py`) decides what happened, at the records that close a decision. The
three kinds of groups share the inputs, because their records have the same shapes; a field that a kind lacks has a
default.

Partitions are by topic id as Kafka prints it, never by name: only types 4, 9 and 15 contain names, and from 4.1 on a
consumer group has none of these. Rounds supply the names. Streams groups have subtopology ids instead. Times are ms
since the epoch, UTC. Packed like the other inputs: fields are only ever appended, with defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"

CONSUMER_EPOCH_TYPE: Final = 3
"""Key type of the epoch of a consumer group."""

IdPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic id (in streams groups by subtopology), in record order: ((id, (partition, ...)), ...)."""


def each_of(partitions: IdPartitions | None) -> Iterator[tuple[str, int]]:
    """Each of these by itself: topic and partition, subtopology and task, or connector and unit; none of None."""
    return ((name, number) for name, numbers in partitions or () for number in numbers)


def count_of(partitions: IdPartitions | None) -> int:
    """How many these are; none of None."""
    return sum([len(numbers) for _, numbers in partitions or ()])


def counts_in(targets: Iterable[IdPartitions | None]) -> dict[str, int]:
    """Partition counts by topic as far as assignments show them: the highest assigned partition plus one."""
    counts: dict[str, int] = {}
    for target in targets:
        for name, numbers in target or ():
            counts[name] = max(counts.get(name, 0), max(numbers, default=-1) + 1)
    return counts


def holders(owned: Mapping[str, IdPartitions | None]) -> dict[tuple[str, int], list[str]]:
    """The members that have each partition, task or unit, in the order of the members."""
    members: dict[tuple[str, int], list[str]] = {}
    for name, of_member in owned.items():
        for place in each_of(of_member):
            members.setdefault(place, []).append(name)
    return members


class AtRecord(msgspec.Struct, frozen=True, array_like=True):
    """An input from one record of the log.

    Attributes:
        record: Log offset.
    """

    record: int

    @property
    def position(self) -> int:
        """Log offset by which this input is ordered."""
        return self.record


class _Record(AtRecord, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The fields of every record.

    Attributes:
        record_time: Record timestamp, ms.
        group_type: `CONSUMER`, `SHARE` or `STREAMS`.
        log_partition: Partition of the offsets log; -1 when not known.
    """

    record_time: int
    group_type: str
    log_partition: int


class GroupEpoch(_Record, frozen=True, array_like=True, tag="ge"):
    """The group's epoch was increased: members, subscriptions or topics changed (types 3, 11, 17).

    Attributes:
        epoch: Group epoch.
        metadata_hash: Hash of the subscribed topics' metadata (4.1+); 0 when not recorded.
        leader_epoch: Leader epoch of the batch that holds the record, as in `MembershipRecord`; -1 when not known.
        validated_topology: Streams groups only: epoch of the topology whose topics the coordinator has found complete
            (4.2+); -1 when it has found none, or none is recorded.
        assignment_configs: Streams groups only: the assignor's settings by name, `num.standby.replicas` among them
            (4.2+); {} when not recorded.
    """

    epoch: int
    metadata_hash: int = 0
    leader_epoch: int = -1
    validated_topology: int = -1
    assignment_configs: dict[str, str] = {}


class ModernMember(_Record, frozen=True, array_like=True, tag="gm"):
    """A member and its subscription (types 5, 10, 19).

    Attributes:
        member_id: Member id.
        instance_id: `group.instance.id`; None for a dynamic member, and in share groups.
        rack: Rack; None when absent.
        client_id: Client id.
        client_host: Host as the broker recorded it.
        topics: Subscribed topic names in record order (the broker sorts them); () in streams groups.
        regex: Subscribed regular expression; None when there is none.
        rebalance_timeout: ms; -1 in share groups.
        assignor: The server assignor that it requests; None when it leaves the choice to the broker.
        classic_protocols: Protocols that a member of the classic protocol supports; None for a member of the new one.
        process_id: Streams groups only; else None.
        topology_epoch: Streams groups only; else -1.
        client_tags: Streams groups only: the process's `client.tag`s by key; else None.
        endpoint: Streams groups only: host and port of `application.server`; None when there is none.
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
    client_tags: dict[str, str] | None = None
    endpoint: tuple[str, int] | None = None


class TargetEpoch(_Record, frozen=True, array_like=True, tag="gt"):
    """The target assignment of an epoch is complete (types 6, 12, 20): the record that closes a decision.

    Attributes:
        epoch: Group epoch at which the target was computed.
        time: Time of the computation, ms (4.3+); 0 when not recorded.
        leader_epoch: Leader epoch of the batch that holds the record, as in `MembershipRecord`; -1 when not known.
        seen_assignor: For a target that was only seen in a round, the server assignor in use; "" where coordinators do
            not tell it. None in the log, which does not have it.
    """

    epoch: int
    time: int = 0
    leader_epoch: int = -1
    seen_assignor: str | None = None


class TargetAssignment(_Record, frozen=True, array_like=True, tag="ga"):
    """The partitions that the coordinator wants a member to own (types 7, 13, 21).

    Attributes:
        member_id: Member id.
        partitions: The wanted partitions; in streams groups the active tasks.
        standby: Standby tasks of streams groups.
        warmup: Warm-up tasks of streams groups.
    """

    member_id: str
    partitions: IdPartitions
    standby: IdPartitions = ()
    warmup: IdPartitions = ()


class CurrentAssignment(_Record, frozen=True, array_like=True, tag="gc"):
    """The partitions that a member owns (types 8, 14, 22).

    Attributes:
        member_id: Member id.
        epoch: Epoch that the member has reached; -2 for a static member that is away and expected back.
        previous_epoch: The epoch before it.
        state: As recorded: 0 stable, 1 unrevoked partitions, 2 unreleased partitions. In streams groups each is one
            higher.
        partitions: The owned partitions; in streams groups the active tasks.
        revoking: Partitions that it still owns and must give up; () in share groups. In streams groups active tasks.
        standby: Standby tasks of streams groups.
        warmup: Warm-up tasks of streams groups.
        revoking_standby: Standby tasks that it still has and must give up.
        revoking_warmup: Warm-up tasks likewise.
    """

    member_id: str
    epoch: int
    previous_epoch: int
    state: int
    partitions: IdPartitions
    revoking: IdPartitions = ()
    standby: IdPartitions = ()
    warmup: IdPartitions = ()
    revoking_standby: IdPartitions = ()
    revoking_warmup: IdPartitions = ()

    @property
    def held(self) -> IdPartitions:
        """What the member owns, with what it must still give up."""
        return *self.partitions, *self.revoking


class ResolvedRegex(_Record, frozen=True, array_like=True, tag="gx"):
    """The topics that match a regular expression (type 16).

    Attributes:
        regex: The expression in the members' subscriptions.
        topics: Topic names, sorted by the broker.
        image_version: Version of the metadata it was resolved against.
        time: Time of the resolution, ms.
    """

    regex: str
    topics: tuple[str, ...]
    image_version: int
    time: int


class KnownTopics(_Record, frozen=True, array_like=True, tag="gn"):
    """Topics by id (types 4 and 9 up to 4.0).

    Attributes:
        topics: (id, name, partition count or None where the record has none), in record order.
    """

    topics: tuple[tuple[str, str, int | None], ...]


class ShareTopics(KnownTopics, frozen=True, array_like=True, tag="gi"):
    """A share group's topics, initializing and initialized ones (type 15); they have no counts.

    Attributes:
        initialized: Partitions whose state is initialized: those that the assignor may assign.
    """

    initialized: IdPartitions


class InternalTopics(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The topics of one subtopology that Kafka Streams creates, and which of its topics are read in step.

    Attributes:
        changelogs: Its stores' changelogs, each with its partition count; 0 for as many as the subtopology has tasks.
            () for a subtopology without state.
        repartition_counts: Partition counts of the repartition topics that it reads, in the order of
            `StreamsTopology.subtopologies`; 0 where the coordinator decides.
        sinks: Repartition topics that it writes.
        copartitioned: Groups of topics that must have equally many partitions: their places among the source topics,
            and among the repartition topics that it reads. Nobody has checked that these exist.
    """

    changelogs: tuple[tuple[str, int], ...] = ()
    repartition_counts: tuple[int, ...] = ()
    sinks: tuple[str, ...] = ()
    copartitioned: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()


class StreamsTopology(_Record, frozen=True, array_like=True, tag="gy"):
    """The topology of a streams group (type 23).

    Attributes:
        epoch: Topology epoch.
        subtopologies: (id, source topics, source regexes, repartition topics that it reads), in record order.
        internal: The internal topics of each, in the same order; () in a state of a release that dropped them.
    """

    epoch: int
    subtopologies: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]
    internal: tuple[InternalTopics, ...] = ()


class Removed(_Record, frozen=True, array_like=True, tag="gr"):
    """A tombstone of one of these types.

    Attributes:
        key_type: Key type.
        part: Member id, or regular expression of type 16; None where the key has neither.
    """

    key_type: int
    part: str | None = None


MODERN_RECORDS: Final[Mapping[int, type[AtRecord]]] = {
    **dict.fromkeys((CONSUMER_EPOCH_TYPE, 11, 17), GroupEpoch),
    **dict.fromkeys((4, 9, 15), KnownTopics),
    **dict.fromkeys((5, 10, 19), ModernMember),
    **dict.fromkeys((6, 12, 20), TargetEpoch),
    **dict.fromkeys((7, 13, 21), TargetAssignment),
    **dict.fromkeys((8, 14, 22), CurrentAssignment),
    16: ResolvedRegex,
    23: StreamsTopology,
}
"""What sets a row of a group's table, by key type (`CoordinatorRecordType`; KIP-848, 932 and 1071)."""


class UnreadableModern(AtRecord, frozen=True, array_like=True, tag="gu"):
    """A record of one of these types whose value cannot be decoded: of a version that a later Kafka writes, say.

    Attributes:
        key_type: Key type.
        part: As in `Removed`.
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
    | ShareTopics
    | StreamsTopology
    | Removed
)


def row_of(item: ModernInput | UnreadableModern) -> str:
    """Name of the row of the group's table that a record sets or removes: the same for all records of one key."""
    if isinstance(item, Removed | UnreadableModern):
        kind, part = MODERN_RECORDS.get(item.key_type, Removed), item.part or ""
    else:
        kind = KnownTopics if isinstance(item, KnownTopics) else type(item)
        part = item.regex if isinstance(item, ResolvedRegex) else getattr(item, "member_id", "")
    return f"{kind.__name__} {part}"
