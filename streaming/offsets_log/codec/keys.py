"""Keys of `__consumer_offsets`: the type of a record and its group.

    int16 type, then the fields that the type's schema names (`schemas/`), never flexible

Before Kafka 4.1 the source calls the type "key version"; the bytes are the same. Redpanda once wrote the keys of
tombstones behind their length, a little-endian int32 (`maybe_unwrap_from_iobuf` in its `group_metadata.cc`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streaming.offsets_log.codec.interpreter import key_layout
from streaming.offsets_log.codec.layouts import RecordSchema
from streaming.offsets_log.codec.record_types import (
    RECORD_TYPES,
    RecordValue,
    Rejected,
    UnknownVersion,
    decode_record_value,
)
from streaming.offsets_log.codec.wire import MalformedError, Reader

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2

OFFSET_COMMIT_HEAD = OFFSET_COMMIT.to_bytes(2, "big")

_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Key of an offset commit (types 0 and 1)."""

    key_type: int
    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Key of a group metadata record (type 2)."""

    group: str


@dataclass(frozen=True, slots=True)
class OtherKey:
    """Key of any other known type (3 to 23).

    Attributes:
        key_type: Key type.
        group: Group id.
        part: Member id, or the regular expression of type 16; None where the type has neither.
    """

    key_type: int
    group: str
    part: str | None


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """Key of a type that this codec does not know: written by a newer broker, or junk."""

    key_type: int


Key = OffsetKey | GroupKey | OtherKey | UnknownKey | Rejected


def decode_key(data: bytes | None) -> Key:
    """Decode the key of one record. Never raises; a key that breaks its layout is `Rejected`.

    Stricter than Java in one thing: a negative partition is refused, since no topic has one.
    """
    if data is None:
        return Rejected("key is null; every record of the offsets log has a key")
    parts = offset_commit_parts(data)
    if parts is not None:
        return OffsetKey(OFFSET_COMMIT, *parts)
    key = _kafka_key(data)
    if isinstance(key, UnknownKey | Rejected):
        return wrapped_key(data) or key
    return key


def wrapped_key(data: bytes) -> OffsetKey | GroupKey | None:
    """The key that Redpanda has written behind its length; None if the bytes are no such thing.

    A wrapped key cannot be a known one of Kafka's: below 256 bytes its length is a type from 256 on, and of a longer
    one the first text would end where its length says no such thing.
    """
    inside = data[_LENGTH_BYTES:]
    if int.from_bytes(data[:_LENGTH_BYTES], "little") != len(inside):
        return None
    key = _kafka_key(inside)
    if isinstance(key, OffsetKey | GroupKey):
        return key
    return None


def _kafka_key(data: bytes) -> Key:
    found = _read_key(data, RECORD_TYPES)
    if isinstance(found, UnknownKey | Rejected):
        return found
    key_type, fields = found
    if key_type in {LEGACY_OFFSET_COMMIT, OFFSET_COMMIT}:
        if fields.partition < 0:
            return Rejected(f"key: partition is {fields.partition}, and no topic has a negative partition")
        return OffsetKey(key_type, *fields)
    if key_type == GROUP_METADATA:
        return GroupKey(*fields)
    return OtherKey(key_type, fields[0], fields[1] if len(fields) > 1 else None)


def _read_key(data: bytes, types: Mapping[int, RecordSchema]) -> tuple[int, Any] | UnknownKey | Rejected:
    """The type of a key with its fields, to its last byte."""
    reader = Reader(data)
    try:
        key_type = reader.int16("key type")
        if key_type not in types:
            return UnknownKey(key_type)
        fields = key_layout(types[key_type]).read(reader)
        reader.end("key")
    except MalformedError as error:
        return Rejected(f"key: {error}")
    return key_type, fields


class DecodedRecord(NamedTuple):
    """A record of another internal topic of Kafka.

    Attributes:
        name: Kafka's name of its type.
        key: Named tuple with Kafka's field names, see `interpreter.py`.
        value: The same; None for a tombstone.
    """

    name: str
    key: Any
    value: Any


def decode_record(
    types: Mapping[int, RecordSchema], key: bytes | None, value: bytes | None
) -> DecodedRecord | UnknownKey | UnknownVersion | Rejected:
    """Decode a record of another internal topic of Kafka, key and value to their last byte. Never raises.

    Args:
        types: The topic's record types, as `record_schemas` reads them from a folder.
        key: The whole key.
        value: The whole value; None for a tombstone.
    """
    if key is None:
        return Rejected("key is null; every record of this topic has a key")
    found = _read_key(key, types)
    if not isinstance(found, tuple):
        return found
    key_type, fields = found
    if value is None:
        return DecodedRecord(types[key_type].name, fields, None)
    content = decode_record_value(key_type, value, types=types)
    if isinstance(content, RecordValue):
        return DecodedRecord(types[key_type].name, fields, content.fields)
    return content


def offset_commit_parts(data: bytes) -> tuple[str, str, int] | None:
    """Group, topic and partition of a key of type 1 in one step: the most common key, and the first step for each.

    None for every other key, and for one that breaks its layout: `decode_key` then says how.
    """
    size = len(data)
    if size < 10 or data[0] or data[1] != OFFSET_COMMIT:
        return None
    topic_at = 6 + (data[2] << 8 | data[3])
    if data[2] & 0x80 or topic_at + 4 > size or data[topic_at - 2] & 0x80:
        return None
    end = topic_at + (data[topic_at - 2] << 8 | data[topic_at - 1])
    if end + 4 != size or data[end] & 0x80:
        return None
    try:
        return (
            data[4 : topic_at - 2].decode("utf-8"),
            data[topic_at:end].decode("utf-8"),
            int.from_bytes(data[end:], "big"),
        )
    except UnicodeDecodeError:
        return None


def offset_commit_key(key: OffsetKey) -> bytes:
    """The bytes of the key of type 1 for the same group, topic and partition."""
    group, topic = key.group.encode(), key.topic.encode()
    return b"".join(
        (
            OFFSET_COMMIT_HEAD,
            len(group).to_bytes(2, "big"),
            group,
            len(topic).to_bytes(2, "big"),
            topic,
            key.partition.to_bytes(4, "big"),
        )
    )
