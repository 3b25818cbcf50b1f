"""From a group metadata value to the core's membership record; the bytes inside are decoded where possible."""

from __future__ import annotations

from typing import Any

from streaming.offsets_log.codec.consumer_protocol import decode_assignment, decode_subscription
from streaming.offsets_log.codec.keys import GROUP_METADATA
from streaming.offsets_log.codec.record import Rejected, UnknownVersion
from streaming.offsets_log.codec.record_types import decode_record_value
from streaming.records import Member, MembershipRecord

__all__ = ["decode_membership"]

# Only this protocol type fills subscription and assignment with the consumer protocol. Kafka Connect
# ("connect") and others put their own bytes there, some of which would even decode, into nonsense.
_CONSUMER = "consumer"


def decode_membership(
    offset: int, timestamp: int, data: bytes, log_partition: int = -1
) -> MembershipRecord | UnknownVersion | Rejected:
    """Decode the value of a group metadata record (key type 2). Never raises.

    A subscription or assignment that does not decode does not reject the record: the member has the reason in
    `undecodable`.

    Args:
        offset: Log offset of the record.
        timestamp: Record timestamp, ms.
        data: The whole value.
        log_partition: Partition of the offsets log; -1 when not known.
    """
    value = decode_record_value(GROUP_METADATA, data)
    if isinstance(value, UnknownVersion | Rejected):
        return value
    metadata = value.fields
    decode = _consumer if metadata.protocolType == _CONSUMER else _opaque
    return MembershipRecord(
        record=offset,
        record_time=timestamp,
        protocol_type=metadata.protocolType,
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=metadata.leader,
        state_time=metadata.currentStateTimestamp,
        members=tuple([decode(member) for member in metadata.members]),
        value_version=value.version,
        log_partition=log_partition,
    )


def _consumer(member: Any) -> Member:
    subscription = decode_subscription(member.subscription)
    assignment = decode_assignment(member.assignment)
    read = None if isinstance(subscription, Rejected) else subscription
    reasons = [part.reason for part in (subscription, assignment) if isinstance(part, Rejected)]
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
        assigned=None if isinstance(assignment, Rejected) else assignment.partitions,
        undecodable="; ".join(reasons) or None,
    )


def _opaque(member: Any) -> Member:
    return Member(
        member_id=member.memberId,
        group_instance_id=member.groupInstanceId,
        client_id=member.clientId,
        client_host=member.clientHost,
        rebalance_timeout=member.rebalanceTimeout,
        session_timeout=member.sessionTimeout,
        subscription_version=None,
        topics=None,
        owned=(),
        generation=None,
        rack=None,
        user_data=None,
        assigned=None,
    )
