"""One record of the offsets log as JSON, with the names of Kafka's message schemas: the lines of `evenkeel decode`.

    in   {"key": hex, "value": hex | null}
    out  {"type": "OffsetCommit", "key_type": 1, "value_version": 4 | null, "key": {...}, "value": {...} | null}
         {"error": reason}

Fields are those that Kafka's generated `...JsonConverter` classes print for the value's version (4.3.1): a
field that the version lacks is absent, a tagged field with its default too; UUIDs as Kafka prints them, bytes
as base64. Subscriptions and assignments of protocol type "consumer" become objects where they decode.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from streaming.groups.inputs import TopicPartitions
from streaming.offsets_log.consumer_protocol import Assignment, Subscription, decode_assignment, decode_subscription
from streaming.offsets_log.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from streaming.offsets_log.keys import (
    EXPRESSION_TYPE,
    GroupKey,
    Key,
    OffsetKey,
    OtherKey,
    UnknownKey,
    decode_key,
)
from streaming.offsets_log.offset_commit import OffsetCommit, decode_offset_commit
from streaming.offsets_log.rejected import Rejected, UnknownVersion
from streaming.offsets_log.topic_id import printed

__all__ = ["decode_line"]

_CONSUMER = "consumer"

_TYPE_NAMES = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    9: "ShareGroupPartitionMetadata",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    18: "StreamsGroupPartitionMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}


def decode_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Decode one record given in hex. Never raises on what a JSON line can hold."""
    try:
        key_bytes = bytes.fromhex(line["key"])
        value = None if line["value"] is None else bytes.fromhex(line["value"])
    except (KeyError, TypeError, ValueError):
        return {"error": 'the line is not {"key": hex, "value": hex or null}'}
    key = decode_key(key_bytes)
    if isinstance(key, Rejected):
        return {"error": key.reason}
    if isinstance(key, UnknownKey):
        return {"error": f"key type {key.key_type} is not known to this release"}
    key_type, key_json = _key(key)
    out = {
        "type": _TYPE_NAMES[key_type],
        "key_type": key_type,
        "value_version": None,
        "key": key_json,
        "value": None,
    }
    if value is None:
        return out
    decoded = _value(key, value)
    if isinstance(decoded, Rejected):
        return {"error": decoded.reason}
    if isinstance(decoded, UnknownVersion):
        return {"error": f"value: version {decoded.version} of key type {key_type} is not known to this release"}
    return out | {"value_version": decoded.version, "value": _value_json(decoded)}


def _key(key: OffsetKey | GroupKey | OtherKey) -> tuple[int, dict[str, Any]]:
    if isinstance(key, OffsetKey):
        return key.key_type, {"group": key.group, "topic": key.topic, "partition": key.partition}
    if isinstance(key, GroupKey):
        return 2, {"group": key.group}
    out = {"groupId": key.group}
    if key.part is not None:
        out["regularExpression" if key.key_type == EXPRESSION_TYPE else "memberId"] = key.part
    return key.key_type, out


def _value(key: Key, value: bytes) -> OffsetCommit | GroupMetadata | UnknownVersion | Rejected:
    if isinstance(key, OffsetKey):
        return decode_offset_commit(key.key_type, value)
    if isinstance(key, GroupKey):
        return decode_group_metadata(value)
    assert isinstance(key, OtherKey)  # noqa: S101  # the other two have been answered
    return Rejected(f"value: values of key type {key.key_type} are not decoded by this release")


def _value_json(value: OffsetCommit | GroupMetadata) -> dict[str, Any]:
    return _commit(value) if isinstance(value, OffsetCommit) else _group(value)


def _commit(value: OffsetCommit) -> dict[str, Any]:
    out: dict[str, Any] = {"offset": value.offset}
    if value.version >= 3:
        out["leaderEpoch"] = value.leader_epoch
    out |= {"metadata": value.metadata, "commitTimestamp": value.commit_timestamp}
    if value.version == 1:
        out["expireTimestamp"] = value.expire_timestamp
    topic_id = printed(value.topic_id)
    if topic_id is not None:
        out["topicId"] = topic_id
    return out


def _group(value: GroupMetadata) -> dict[str, Any]:
    out: dict[str, Any] = {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
    }
    if value.version >= 2:
        out["currentStateTimestamp"] = value.current_state_timestamp
    consumer = value.protocol_type == _CONSUMER
    out["members"] = [_member(member, value.version, consumer=consumer) for member in value.members]
    return out


def _member(member: GroupMember, version: int, *, consumer: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"memberId": member.member_id}
    if version >= 3:
        out["groupInstanceId"] = member.group_instance_id
    out |= {"clientId": member.client_id, "clientHost": member.client_host}
    if version >= 1:
        out["rebalanceTimeout"] = member.rebalance_timeout
    out["sessionTimeout"] = member.session_timeout
    out["subscription"] = _base64(member.subscription)
    out["assignment"] = _base64(member.assignment)
    if consumer:
        subscription = decode_subscription(member.subscription)
        if isinstance(subscription, Subscription):
            out["subscription"] = _subscription(subscription)
        assignment = decode_assignment(member.assignment)
        if isinstance(assignment, Assignment) and assignment.version is not None:
            out["assignment"] = {
                "assignedPartitions": _topic_partitions(assignment.partitions),
                "userData": _base64(assignment.user_data),
            }
    return out


def _subscription(value: Subscription) -> dict[str, Any]:
    out: dict[str, Any] = {"topics": list(value.topics), "userData": _base64(value.user_data)}
    if value.version >= 1:
        out["ownedPartitions"] = _topic_partitions(value.owned)
    if value.version >= 2:
        out["generationId"] = value.generation
    if value.version >= 3:
        out["rackId"] = value.rack
    return out


def _topic_partitions(value: TopicPartitions) -> list[dict[str, Any]]:
    return [{"topic": topic, "partitions": list(partitions)} for topic, partitions in value]


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")
