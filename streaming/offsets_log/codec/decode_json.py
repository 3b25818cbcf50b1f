"""One record of the offsets log as JSON, with the names of Kafka's message schemas: the lines of `evenkeel decode`.

    in   {"key": hex, "value": hex | null}
    out  {"type": "OffsetCommit", "key_type": 1, "value_version": 4 | null, "key": {...}, "value": {...} | null}
         {"error": reason}

The fields are those that Kafka's generated `...JsonConverter` classes print for the value's version (`interpreter.py`).
In group metadata with protocol type "consumer", subscriptions and assignments become objects where they decode. A
record in Redpanda's layout (`record_types.py`) has `"dialect": "redpanda"` besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.offsets_log.codec.interpreter import base64_of
from streaming.offsets_log.codec.membership import (
    MemberAssignment,
    MemberSubscription,
    decode_assignment,
    decode_subscription,
)
from streaming.offsets_log.codec.record_types import (
    GROUP_METADATA,
    RECORD_TYPES,
    GroupKey,
    OffsetKey,
    OtherKey,
    RecordValue,
    Rejected,
    UnknownKey,
    UnknownVersion,
    decode_key,
    decode_record_value,
    wrapped_key,
)
from streaming.records import TopicPartitions

_CONSUMER = "consumer"


def decode_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Decode one record given in hex. Never raises on what a JSON line can hold."""
    try:
        key_bytes = bytes.fromhex(line["key"])
        value_bytes = None if line["value"] is None else bytes.fromhex(line["value"])
    except (KeyError, TypeError, ValueError):
        return {"error": 'the line is not {"key": hex, "value": hex or null}'}
    key = decode_key(key_bytes)
    if isinstance(key, Rejected):
        return {"error": key.reason}
    if isinstance(key, UnknownKey):
        return {"error": f"key type {key.key_type} is not known to this release"}
    key_type, key_json = _key(key)
    out = {
        "type": RECORD_TYPES[key_type].name,
        "key_type": key_type,
        "value_version": None,
        "key": key_json,
        "value": None,
    }
    if wrapped_key(key_bytes) == key:
        out["dialect"] = "redpanda"
    if value_bytes is None:
        return out
    value = decode_record_value(key_type, value_bytes)
    if isinstance(value, Rejected):
        return {"error": value.reason}
    if isinstance(value, UnknownVersion):
        return {"error": f"value: version {value.version} of key type {key_type} is not known to this release"}
    if value.dialect != "kafka":
        out["dialect"] = value.dialect
    return out | {"value_version": value.version, "value": _value(value)}


def _key(key: OffsetKey | GroupKey | OtherKey) -> tuple[int, dict[str, Any]]:
    values: tuple[str | int | None, ...]
    if isinstance(key, OffsetKey):
        key_type, values = key.key_type, (key.group, key.topic, key.partition)
    elif isinstance(key, GroupKey):
        key_type, values = GROUP_METADATA, (key.group,)
    else:
        key_type, values = key.key_type, (key.group, key.part)
    # There are fewer values where the type has no second part.
    return key_type, {field.name: value for field, value in zip(RECORD_TYPES[key_type].key, values, strict=False)}


def _value(value: RecordValue) -> dict[str, Any]:
    printed = value.printed()
    if value.schema.key_type == GROUP_METADATA and value.fields.protocolType == _CONSUMER:
        for member, show in zip(value.fields.members, printed["members"], strict=True):
            subscription = decode_subscription(member.subscription)
            if isinstance(subscription, MemberSubscription):
                show["subscription"] = _subscription(subscription)
            assignment = decode_assignment(member.assignment)
            if isinstance(assignment, MemberAssignment) and assignment.version is not None:
                show["assignment"] = {
                    "assignedPartitions": _topic_partitions(assignment.partitions),
                    "userData": base64_of(assignment.user_data),
                }
    return printed


def _subscription(value: MemberSubscription) -> dict[str, Any]:
    out: dict[str, Any] = {"topics": list(value.topics), "userData": base64_of(value.user_data)}
    if value.version >= 1:
        out["ownedPartitions"] = _topic_partitions(value.owned)
    if value.version >= 2:
        out["generationId"] = value.generation
    if value.version >= 3:
        out["rackId"] = value.rack
    return out


def _topic_partitions(value: TopicPartitions) -> list[dict[str, Any]]:
    return [{"topic": topic, "partitions": list(partitions)} for topic, partitions in value]
