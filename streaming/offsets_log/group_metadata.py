"""Values of group metadata (key type 2): the classic group after a completed rebalance.

    int16 version, then:
      protocolType          string     0+
      generation            int32      0+
      protocol              string?    0+
      leader                string?    0+
      currentStateTimestamp int64      2+, ms, -1 = none
      members               array      0+, each:
        memberId            string     0+
        groupInstanceId     string?    3+
        clientId            string     0+
        clientHost          string     0+
        rebalanceTimeout    int32      1+, ms
        sessionTimeout      int32      0+, ms
        subscription        bytes      0+
        assignment          bytes      0+
    Version 4 is flexible: compact encodings, and tagged fields (none defined) after each member and at the end.

Source: `GroupMetadataValue.json`, Kafka 4.3.1, which writes v3; v4 is readable since 3.4.1 (KIP-915) and was
never written. What subscription and assignment hold depends on the protocol type (`membership.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.offsets_log.rejected import Rejected, UnknownVersion
from streaming.offsets_log.wire import MalformedError, Reader

__all__ = ["GroupMember", "GroupMetadata", "decode_group_metadata"]

_NEWEST = 4
_FLEXIBLE_FROM = 4
# Three strings, an int32 and two byte fields, each at its shortest: what one member takes at least.
_LEAST_MEMBER = {True: 3 + 4 + 2, False: 3 * 2 + 4 + 2 * 4}


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member as the record has it; units and nulls as in the layout above, -1 where a version has no field."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """One group after a completed rebalance; members in record order, which a recomputation needs."""

    version: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[GroupMember, ...]


def decode_group_metadata(data: bytes) -> GroupMetadata | UnknownVersion | Rejected:
    """Decode the value of a group metadata record; trailing bytes are refused. Never raises."""
    reader = Reader(data)
    try:
        version = reader.int16("value version")
        if version > _NEWEST:
            return UnknownVersion(version)
        if version < 0:
            return Rejected(f"value: version {version} is negative")
        reader.flexible = version >= _FLEXIBLE_FROM
        protocol_type = reader.string("protocolType")
        generation = reader.int32("generation")
        protocol = reader.nullable_string("protocol")
        leader = reader.nullable_string("leader")
        timestamp = reader.int64("currentStateTimestamp") if version >= 2 else -1
        count = reader.count("members", _LEAST_MEMBER[reader.flexible])
        members = tuple([_member(reader, version, index) for index in range(count)])
        reader.tagged_fields({})
        reader.end("value")
    except MalformedError as error:
        return Rejected(f"value: {error}")
    return GroupMetadata(version, protocol_type, generation, protocol, leader, timestamp, members)


def _member(reader: Reader, version: int, index: int) -> GroupMember:
    try:
        member = GroupMember(
            member_id=reader.string("memberId"),
            group_instance_id=reader.nullable_string("groupInstanceId") if version >= 3 else None,
            client_id=reader.string("clientId"),
            client_host=reader.string("clientHost"),
            rebalance_timeout=reader.int32("rebalanceTimeout") if version >= 1 else -1,
            session_timeout=reader.int32("sessionTimeout"),
            subscription=reader.bytes_("subscription"),
            assignment=reader.bytes_("assignment"),
        )
        reader.tagged_fields({})
    except MalformedError as error:
        message = f"member {index}: {error}"
        raise MalformedError(message) from None
    return member
