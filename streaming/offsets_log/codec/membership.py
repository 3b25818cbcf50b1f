"""From a group metadata value to the core's membership record; the bytes inside are decoded where possible.

With protocol type "consumer" each member has two values of the consumer protocol, which is never flexible:

    Subscription                                       Assignment
      version          int16                             version             int16
      topics           array of string      0+           assignedPartitions  array of {topic, partitions} 0+
      userData         bytes?               0+           userData            bytes?                       0+
      ownedPartitions  array of             1+
        topic          string
        partitions     array of int32
      generationId     int32                2+, -1 = none
      rackId           string?              3+, "" = none

Newer versions only append fields: a higher version is read as 3, and bytes after the last known field are skipped, as
Java does. Some clients claim a higher version than their bytes have: kafka-go, sarama-cluster and others write 1 and
the fields of 0. So a subscription that ends where a lower version ends is read as that version, as sarama and franz-go
read it (Java refuses it). An assignment of zero bytes is an empty one: the leader did not return that member.

Source: `ConsumerProtocolSubscription.json`, `ConsumerProtocolAssignment.json`, `ConsumerProtocol.java`,
kafka-clients 4.3.1; KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (rack).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from streaming.offsets_log.codec.connect import decode_worker_assignment, decode_worker_state, unique_units
from streaming.offsets_log.codec.record_types import GROUP_METADATA, Rejected, UnknownVersion, decode_record_value
from streaming.offsets_log.codec.stream_thread import stream_thread
from streaming.offsets_log.codec.wire import ELEMENT_BYTES, Allowance, MalformedError, Reader
from streaming.records import (
    CONNECT,
    CONSUMER,
    STREAM,
    Member,
    MembershipRecord,
    TopicPartitions,
    Worker,
    pack_user_data,
)

# Newest version of a subscription with a field of its own.
_NEWEST = 3


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """A member's subscription, as it joined.

    Attributes:
        version: As written, even beyond 3; but the version of its fields where they are those of a lower one.
        topics: In record order.
        user_data: None when null; empty is b"".
        owned: Partitions it owned, in record order; empty below v1.
        generation: `generationId` as written, in which it owned them; -1 below v2.
        rack: `rackId` as written; None below v3 or when null.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned: TopicPartitions
    generation: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member's assignment, as the leader made it.

    Attributes:
        version: As written; None for an assignment of zero bytes.
        partitions: In record order.
        user_data: None when null; empty is b"".
    """

    version: int | None
    partitions: TopicPartitions
    user_data: bytes | None


def decode_subscription(data: bytes, allowance: Allowance | None = None) -> MemberSubscription | Rejected:
    """Decode a member's subscription. Never raises."""
    reader = Reader(data, allowance=allowance)
    try:
        version = reader.version()
        topics = tuple([reader.string("topic") for _ in range(reader.count("topics", 2, ELEMENT_BYTES))])
        user_data = reader.nullable_bytes("userData")
        owned: TopicPartitions = ()
        generation, rack = -1, None
        for newer in range(1, min(version, _NEWEST) + 1):
            if not reader.remaining:
                version = newer - 1
                break
            if newer == 1:
                owned = reader.numbers_by_name("ownedPartitions", "topic", "partitions")
            elif newer == 2:
                generation = reader.int32("generationId")
            else:
                rack = reader.nullable_string("rackId")
    except MalformedError as error:
        return Rejected(f"subscription: {error}")
    return MemberSubscription(version, topics, user_data, owned, generation, rack)


def decode_assignment(data: bytes, allowance: Allowance | None = None) -> MemberAssignment | Rejected:
    """Decode a member's assignment. Never raises."""
    if not data:
        return MemberAssignment(None, (), None)
    reader = Reader(data, allowance=allowance)
    try:
        version = reader.version()
        partitions = reader.numbers_by_name("assignedPartitions", "topic", "partitions")
        user_data = reader.nullable_bytes("userData")
    except MalformedError as error:
        return Rejected(f"assignment: {error}")
    return MemberAssignment(version, partitions, user_data)


def decode_membership(
    offset: int, timestamp: int, data: bytes, log_partition: int = -1, allowance: Allowance | None = None
) -> MembershipRecord | UnknownVersion | Rejected:
    """Decode the value of a group metadata record (key type 2). Never raises.

    A subscription or assignment that does not decode does not reject the record: the member has the reason in
    `undecodable`.

    Args:
        offset: Log offset of the record.
        timestamp: Record timestamp, ms.
        data: The whole value.
        log_partition: Partition of the offsets log; -1 when not known.
        allowance: Counts the memory that the record takes.
    """
    allowance = Allowance() if allowance is None else allowance
    value = decode_record_value(GROUP_METADATA, data, allowance)
    if isinstance(value, UnknownVersion | Rejected):
        return value
    metadata = value.fields
    kind, protocol = metadata.protocolType, metadata.protocol
    members = tuple([_decoded(member, kind, protocol, allowance) for member in metadata.members])
    if allowance.exceeded:
        return Rejected("value: its members have more topics and partitions than any coordinator writes into a record")
    return MembershipRecord(
        record=offset,
        record_time=timestamp,
        protocol_type=metadata.protocolType,
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=metadata.leader,
        state_time=metadata.currentStateTimestamp,
        members=members,
        value_version=value.version,
        log_partition=log_partition,
    )


def seen_member(
    member_id: str,
    instance_id: str | None,
    client_id: str,
    client_host: str,
    subscription: bytes,
    assignment: bytes,
    *,
    protocol_type: str,
    protocol: str,
) -> Member:
    """A member as an answer to DescribeGroups tells it, decoded like one of a record. Never raises.

    Args:
        member_id: Member id.
        instance_id: `group.instance.id`; None for a dynamic member.
        client_id: Client id.
        client_host: Host as the broker recorded it.
        subscription: Bytes of its subscription.
        assignment: Bytes of its assignment.
        protocol_type: The group's protocol type.
        protocol: Its protocol: the strategy's name.
    """
    # With the names of a record's member; the answer has no timeouts.
    member = SimpleNamespace(
        memberId=member_id,
        groupInstanceId=instance_id,
        clientId=client_id,
        clientHost=client_host,
        subscription=subscription,
        assignment=assignment,
        rebalanceTimeout=-1,
        sessionTimeout=-1,
    )
    return _decoded(member, protocol_type, protocol)


def _decoded(member: Any, protocol_type: str, protocol: str | None, allowance: Allowance | None = None) -> Member:
    """A member with its bytes decoded. Other protocol types put their own there, which might decode into nonsense."""
    if protocol_type == CONSUMER:
        return _consumer(member, protocol, allowance)
    if protocol_type == CONNECT:
        return _worker(member, allowance)
    return _member(member)


def _worker(member: Any, allowance: Allowance | None = None) -> Member:
    """A Connect worker: what it ran when it joined is what it owned, what it runs after the assignment is assigned."""
    state = decode_worker_state(member.subscription, allowance)
    assignment = decode_worker_assignment(member.assignment, allowance)
    if isinstance(state, Rejected) or isinstance(assignment, Rejected):
        reasons = [part.reason for part in (state, assignment) if isinstance(part, Rejected)]
        return _member(member, undecodable="; ".join(reasons))
    before = () if state.allocation is None else unique_units(state.allocation.units)
    worker = Worker(
        url=state.url,
        config_offset=state.config_offset,
        last_offset=-1 if state.allocation is None else state.allocation.config_offset,
        assigned_offset=assignment.config_offset,
        error=assignment.error,
        started=unique_units(assignment.units),
        revoked=unique_units(assignment.revoked),
        delay=assignment.delay,
    )
    read = MemberSubscription(state.version, (), pack_user_data(worker), before, -1, None)
    if assignment.version == 0:
        return _member(member, read, worker.started)
    return _member(member, read, unique_units((*before, *worker.started), worker.revoked))


def _consumer(member: Any, protocol: str | None, allowance: Allowance | None = None) -> Member:
    subscription = decode_subscription(member.subscription, allowance)
    assignment = decode_assignment(member.assignment, allowance)
    reasons = [part.reason for part in (subscription, assignment) if isinstance(part, Rejected)]
    if protocol == STREAM and isinstance(subscription, MemberSubscription) and isinstance(assignment, MemberAssignment):
        thread = stream_thread(subscription.user_data, assignment.user_data, assignment.partitions)
        subscription = replace(subscription, user_data=pack_user_data(thread))
    return _member(
        member,
        None if isinstance(subscription, Rejected) else subscription,
        None if isinstance(assignment, Rejected) else assignment.partitions,
        "; ".join(reasons) or None,
    )


def _member(
    member: Any,
    read: MemberSubscription | None = None,
    assigned: TopicPartitions | None = None,
    undecodable: str | None = None,
) -> Member:
    return Member(
        member_id=member.memberId,
        group_instance_id=member.groupInstanceId,
        client_id=member.clientId,
        client_host=member.clientHost,
        rebalance_timeout=member.rebalanceTimeout,
        session_timeout=member.sessionTimeout,
        subscription_version=read.version if read else None,
        topics=read.topics if read else None,
        owned=read.owned if read else (),
        # As Java's Subscription: a negative generation means none. (So does an empty rack, except for librdkafka.)
        generation=read.generation if read and read.generation >= 0 else None,
        rack=read.rack if read else None,
        user_data=read.user_data if read else None,
        assigned=assigned,
        undecodable=undecodable,
    )
