"""Members of a classic group, and what a round saw of a group whose log is not read: membership, committed offsets.

A round without log positions cannot say which records it includes. So what it saw of a group comes with the group's
observation (`GroupObservation`), and the core compares it with what it knows (`streaming/groups/seen/`). Membership
comes when it has changed and once per heartbeat; where it is missing, it is as it was.
"""

from __future__ import annotations

import msgspec

from streaming.records.modern import IdPartitions, InternalTopics

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic, in the order of the record: ((topic, (partition, ...)), ...)."""


CONNECT = "connect"
"""Protocol type of the groups of Kafka Connect's workers."""

CONNECTOR = -1
"""Number of the unit that is a connector itself, beside its tasks, which count from 0."""


class Member(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One member of a group metadata record, decoded as far as possible.

    A Connect worker has its units in place of partitions: by connector its tasks, and `CONNECTOR` for the connector
    itself. It owned what it ran when it joined, and is assigned what it runs after the decision.

    Attributes:
        member_id: Member id.
        group_instance_id: `group.instance.id`; None for a dynamic member.
        client_id: Client id.
        client_host: Host as the broker recorded it, for example "/127.0.0.1".
        rebalance_timeout: ms; -1 when the record version has none.
        session_timeout: ms; -1 where only rounds have seen the member.
        subscription_version: Version of the consumer protocol's subscription; None when not decoded.
        topics: Subscribed topics in record order, none for a Connect worker; None when not decoded.
        owned: Owned partitions of the subscription (v1+), in record order.
        generation: Generation of the subscription (v2+); None when absent or -1.
        rack: Rack of the subscription (v3+); None when absent. An empty text also means none.
        user_data: User data of the subscription; None when null (an empty value is b""). Of a thread of Kafka Streams
            its `StreamThread`, and of a Connect worker its `Worker`, packed: so the last release, too, can read the
            state of such a group.
        assigned: Assigned partitions in record order; None when the assignment was not decoded.
        undecodable: Why subscription or assignment could not be decoded; None when both were, or when the protocol type
            is neither "consumer" nor "connect" (then neither is tried).
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int = -1
    session_timeout: int = -1
    subscription_version: int | None = None
    topics: tuple[str, ...] | None = None
    owned: TopicPartitions = ()
    generation: int | None = None
    rack: str | None = None
    user_data: bytes | None = None
    assigned: TopicPartitions | None = None
    undecodable: str | None = None


STREAM = "stream"
"""Name of the strategy of Kafka Streams (`StreamsPartitionAssignor`) in a classic group."""


class StreamThread(msgspec.Struct, frozen=True, array_like=True):
    """What only a thread of Kafka Streams has, beside its partitions: the tasks that it got.

    Attributes:
        version: Version of what it sent its leader (`SubscriptionInfo`); -1 where it cannot be read.
        process: Id of its process, as Java prints a UUID; None where the version is not known.
        active: Its active tasks: by subtopology the partitions.
        standby: Its standby tasks, warm-ups among them.
        topics: Topics that its active tasks read, by subtopology.
        error: Why the leader could not assign (`AssignorError`); 0 if it could.
        next_rebalance: Time at which it is to ask for a rebalance, to see whether replicas have caught up, ms; 0 for at
            once, None for never.
        unreadable: Why its tasks are not known; None if they are.
    """

    version: int = -1
    process: str | None = None
    active: TopicPartitions = ()
    standby: TopicPartitions = ()
    topics: tuple[tuple[str, tuple[str, ...]], ...] = ()
    error: int = 0
    next_rebalance: int | None = None
    unreadable: str | None = None


_THREAD = msgspec.msgpack.Decoder(StreamThread)


def thread_of(member: Member) -> StreamThread | None:
    """The own part of a thread of Kafka Streams; None where another release, which did not read it, kept the bytes."""
    try:
        return _THREAD.decode(member.user_data or b"")
    except msgspec.MsgspecError:
        return None


class Worker(msgspec.Struct, frozen=True, array_like=True):
    """What only a Connect worker has, beside its units.

    Attributes:
        url: URL of its REST API.
        config_offset: Offset in the configuration topic up to which it had read when it joined.
        last_offset: The same of the assignment that it had before; -1 if it had none, or the protocol is eager.
        assigned_offset: The same of the assignment that it got.
        error: 0 if the leader could assign; 1 if it had not read a configuration that some worker knew.
        started: Units that it was given: all that it runs in the eager protocol, else those that it did not run.
        revoked: Units that it was to stop.
        delay: Time after which the workers are to join again, ms; 0 for none.
    """

    url: str
    config_offset: int
    last_offset: int
    assigned_offset: int
    error: int
    started: TopicPartitions
    revoked: TopicPartitions
    delay: int


_WORKER = msgspec.msgpack.Decoder(Worker)


def pack_user_data(told: StreamThread | Worker) -> bytes:
    """A thread or a worker as `Member.user_data` has it."""
    return msgspec.msgpack.encode(told)


def worker_of(member: Member) -> Worker | None:
    """A Connect worker's own part; None where it could not be decoded, or another release did not try."""
    if member.user_data is None or member.undecodable is not None or member.assigned is None:
        return None
    try:
        return _WORKER.decode(member.user_data)
    except msgspec.DecodeError:
        return None


class SeenClassic(msgspec.Struct, frozen=True, array_like=True):
    """Members of a classic group in the state Stable.

    Attributes:
        protocol_type: "consumer", "connect", ...
        protocol: Selected protocol (the strategy's name).
        members: The members, in the order of the answer; without timeouts, which it does not have (-1).
        more: Number of members that are left out because they would be too large; then all are.
    """

    protocol_type: str
    protocol: str
    members: tuple[Member, ...]
    more: int = 0


class SeenTasks(msgspec.Struct, frozen=True, array_like=True):
    """What only a member of a streams group has, beside its active tasks.

    Attributes:
        process_id: Id of its process.
        topology_epoch: Epoch of the topology that it runs.
        standby: Standby tasks that it has.
        warmup: Warm-up tasks that it has.
        target_standby: Standby tasks that the coordinator wants it to have.
        target_warmup: Warm-up tasks likewise.
        client_tags: The process's `client.tag`s by key.
        endpoint: Host and port of `application.server`; None when there is none.
    """

    process_id: str
    topology_epoch: int
    standby: IdPartitions = ()
    warmup: IdPartitions = ()
    target_standby: IdPartitions = ()
    target_warmup: IdPartitions = ()
    client_tags: dict[str, str] = {}
    endpoint: tuple[str, int] | None = None


class SeenMember(msgspec.Struct, frozen=True, array_like=True):
    """A member of a group that the broker assigns.

    Attributes:
        member_id: Member id.
        epoch: Epoch that it has reached.
        client_id: Client id.
        client_host: Host as the broker recorded it.
        instance_id: `group.instance.id`; None for a dynamic member, and in share groups.
        rack: Its rack; None when absent.
        topics: Subscribed topic names; () in streams groups.
        regex: Subscribed regular expression; None when there is none.
        owned: Partitions that it owns, by topic id; in streams groups its active tasks.
        target: Partitions that the coordinator wants it to own, by topic id; in streams groups active tasks. () in
            share groups, of which coordinators do not tell it.
        classic: It uses the classic protocol; None when unknown.
        tasks: What only members of streams groups have; None for other types.
    """

    member_id: str
    epoch: int
    client_id: str
    client_host: str
    instance_id: str | None
    rack: str | None
    topics: tuple[str, ...]
    regex: str | None
    owned: IdPartitions
    target: IdPartitions
    classic: bool | None
    tasks: SeenTasks | None = None


class SeenTopology(msgspec.Struct, frozen=True, array_like=True):
    """The topology of a streams group.

    Attributes:
        epoch: Topology epoch.
        ready: The coordinator has found its topics complete, with the right partition counts.
        subtopologies: As in `StreamsTopology`, in the order of the answer. Topics of regular expressions are among the
            source topics once the topology is ready.
        internal: As in `StreamsTopology`.
        settings: The settings that the assignor goes by; None where they may not be read.
    """

    epoch: int
    ready: bool
    subtopologies: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]
    internal: tuple[InternalTopics, ...]
    settings: dict[str, str] | None = None


class SeenModern(msgspec.Struct, frozen=True, array_like=True):
    """Members of a group that the broker assigns: a consumer group of KIP-848, a share group, or a streams group.

    Attributes:
        epoch: Group epoch.
        assignment_epoch: Epoch of the target assignment; below `epoch` while the next one is being computed.
        assignor: Server assignor in use; "" for streams groups, of which coordinators do not tell it.
        members: The members, in the order of the answer.
        more: As in `SeenClassic`.
        topology: Of a streams group; None for other types.
    """

    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[SeenMember, ...]
    more: int = 0
    topology: SeenTopology | None = None


class SeenCommits(msgspec.Struct, frozen=True, array_like=True):
    """Committed offsets that moved, or all.

    Attributes:
        whole: These are all offsets of the group: others are gone.
        offsets: (partition, committed offset) by topic; -1 for an offset that is gone.
    """

    whole: bool
    offsets: dict[str, tuple[tuple[int, int], ...]]


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """What one round saw of one group.

    Attributes:
        source: Where from: "admin" for Kafka's requests about groups.
        looked: The round has looked at the membership: without `classic` or `modern` it is as it was.
        absent_at: Time of the closed round before, which did not list the group, ms; -1 for a group that it listed, or
            if nobody knows.
        classic: Membership of a classic group; None when it is as it was.
        modern: Membership of a group that the broker assigns; None likewise.
        commits: Committed offsets; None when none has moved.
    """

    source: str
    looked: bool = False
    absent_at: int = -1
    classic: SeenClassic | None = None
    modern: SeenModern | None = None
    commits: SeenCommits | None = None
