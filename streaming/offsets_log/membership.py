"""From a group metadata value to the core's membership record: the bytes inside are decoded where they can be."""

from __future__ import annotations

from streaming.groups.inputs import Member, MembershipRecord
from streaming.offsets_log.consumer_protocol import decode_assignment, decode_subscription
from streaming.offsets_log.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from streaming.offsets_log.rejected import Rejected, UnknownVersion

__all__ = ["decode_membership"]

# Only this protocol type fills subscription and assignment with the consumer protocol. Kafka Connect
# ("connect") and others put their own bytes there, some of which would even decode, into nonsense.
_CONSUMER = "consumer"


def decode_membership(
    offset: int, timestamp: int, data: bytes, log_partition: int = -1
) -> MembershipRecord | UnknownVersion | Rejected:
    """Decode the value of a group metadata record (key type 2). Never raises.

    A subscription or assignment that does not decode leaves the record standing: the member says so in
    `undecodable`.

    Args:
        offset: Log offset of the record.
        timestamp: Record timestamp, ms.
        data: The whole value.
        log_partition: Partition of the offsets log; -1 when not known.
    """
    metadata = decode_group_metadata(data)
    if not isinstance(metadata, GroupMetadata):
        return metadata
    decode = _consumer if metadata.protocol_type == _CONSUMER else _opaque
    return MembershipRecord(
        record=offset,
        record_time=timestamp,
        protocol_type=metadata.protocol_type,
        generation=metadata.generation,
        protocol=metadata.protocol,
        leader=metadata.leader,
        state_time=metadata.current_state_timestamp,
        members=tuple([decode(member) for member in metadata.members]),
        value_version=metadata.version,
        log_partition=log_partition,
    )


def _consumer(member: GroupMember) -> Member:
    subscription = decode_subscription(member.subscription)
    assignment = decode_assignment(member.assignment)
    read = None if isinstance(subscription, Rejected) else subscription
    reasons = [part.reason for part in (subscription, assignment) if isinstance(part, Rejected)]
    return Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout,
        session_timeout=member.session_timeout,
        subscription_version=read.version if read else None,
        topics=read.topics if read else None,
        owned=read.owned if read else (),
        # As Java's Subscription: a negative generation and an empty rack stand for none.
        generation=read.generation if read and read.generation >= 0 else None,
        rack=(read.rack or None) if read else None,
        user_data=read.user_data if read else None,
        assigned=None if isinstance(assignment, Rejected) else assignment.partitions,
        undecodable="; ".join(reasons) or None,
    )


def _opaque(member: GroupMember) -> Member:
    return Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout,
        session_timeout=member.session_timeout,
        subscription_version=None,
        topics=None,
        owned=(),
        generation=None,
        rack=None,
        user_data=None,
        assigned=None,
    )
