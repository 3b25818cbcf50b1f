"""Records of the offsets log: their keys, and their values by the int16 at the head of the key.

    key    int16 type, then the fields that the type's schema names (`schemas/`), never flexible
    value  int16 version, then the fields of the type's schema in that version; null for a tombstone

Before Kafka 4.1 the source calls the type "key version"; the bytes are the same. Redpanda once wrote the keys of
tombstones behind their length, a little-endian int32 (`maybe_unwrap_from_iobuf` in its `group_metadata.cc`).

Bad data is a value (`Rejected`, `UnknownVersion`): it ends in a table, not in a stack trace.

Redpanda writes the same records, except that each member of a group's metadata begins with an int16 version of its own,
which is that of the value (`member_state::encode` in its `group_metadata.cc`; always 3 since this log is there, 22.1).
Nothing in a record names its writer. So a value is Kafka's if it decodes as Kafka's; one that does not is Redpanda's if
it decodes as that, with each of these versions and to its last byte. Both are possible only where the members' ids have
a single character: as Kafka's each would be the bytes 0 and 1 and the character. No coordinator gives such ids (they
end with a UUID), so then it is Redpanda's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from streaming.offsets_log.codec.interpreter import is_flexible, key_layout, value_layout
from streaming.offsets_log.codec.layouts import RecordSchema, record_schemas
from streaming.offsets_log.codec.wire import Allowance, MalformedError, Reader


class LogRecord(NamedTuple):
    """A record and its place in the log; a named tuple, because it is created on the hot path.

    Attributes:
        offset: Log offset.
        timestamp: Record timestamp, ms.
        key: Key bytes; None when null.
        value: Value bytes; None for a tombstone.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Bytes that do not follow the layout of their type.

    Attributes:
        reason: What is wrong and where, in one sentence, without the bytes.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """A value of a version that this codec does not know: written by a newer broker, not damaged.

    Attributes:
        version: The int16 at the head of the value.
    """

    version: int


RECORD_TYPES: dict[int, RecordSchema] = record_schemas()
"""Schema by key type, ascending."""


LogDialect = Literal["kafka", "redpanda"]
"""Whose layout of a record it is, where they differ."""

# Type and version of the value that Redpanda lays out in its own way.
_REDPANDA = "GroupMetadata", 3

_VERSION_BYTES = 2


@dataclass(frozen=True, slots=True)
class RecordValue:
    """The value of one record.

    Attributes:
        schema: Its type.
        version: Version of the value.
        fields: Named tuple with Kafka's field names, see `interpreter.py`.
        dialect: Whose layout it has.
    """

    schema: RecordSchema
    version: int
    fields: Any
    dialect: LogDialect = "kafka"

    def printed(self) -> dict[str, Any]:
        """As Kafka's `...JsonConverter` prints it."""
        printed: dict[str, Any] = value_layout(self.schema, self.version).printed(self.fields)
        return printed


def decode_record_value(
    key_type: int,
    data: bytes,
    allowance: Allowance | None = None,
    types: Mapping[int, RecordSchema] = RECORD_TYPES,
) -> RecordValue | UnknownVersion | Rejected:
    """Decode the value of any known type, to its last byte. Never raises.

    Args:
        key_type: One of `types`.
        data: The whole value.
        allowance: Counts the memory that the value takes; beyond `wire.MOST_DECODED` it is `Rejected`.
        types: The record types of its topic.
    """
    schema = types[key_type]
    if schema.versions is None:
        return Rejected(f"value: no release has written type {key_type} ({schema.name}), so no layout of it is known")
    try:
        version = Reader(data).int16("value version")
    except MalformedError as error:
        return Rejected(f"value: {error}")
    if version > schema.versions[1]:
        return UnknownVersion(version)
    if version < schema.versions[0]:
        return Rejected(f"value: version {version} is negative")
    allowance = Allowance() if allowance is None else allowance
    taken = allowance.taken
    value = _decode(schema, version, data, allowance, "kafka")
    if (schema.name, version) != _REDPANDA or allowance.exceeded or not _may_be_redpandas(value):
        return value
    allowance.taken = taken
    other = _decode(schema, version, data, allowance, "redpanda")
    if isinstance(other, Rejected):
        return value
    return other


def _may_be_redpandas(value: RecordValue | Rejected) -> bool:
    """Whether group metadata does not decode as Kafka's, or with a member id that no coordinator gives."""
    return isinstance(value, Rejected) or any(member.memberId.startswith("\0") for member in value.fields.members[:1])


def _decode(
    schema: RecordSchema, version: int, data: bytes, allowance: Allowance, dialect: LogDialect
) -> RecordValue | Rejected:
    reader = Reader(data, _VERSION_BYTES, flexible=is_flexible(schema, version), allowance=allowance)
    try:
        fields = value_layout(schema, version, repeats_version=dialect == "redpanda").read(reader)
        reader.end("value")
    except MalformedError as error:
        return Rejected(f"value: {error}")
    return RecordValue(schema, version, fields, dialect)


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
