"""Records of the offsets log, and the schemas of their keys and values by the int16 at the head of the key.

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

from streaming.offsets_log.codec.interpreter import is_flexible, value_layout
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
