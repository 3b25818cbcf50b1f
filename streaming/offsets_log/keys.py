"""Keys of `__consumer_offsets`: which kind of record, of which group.

    int16 type, then the body, never flexible:
      0, 1                        group string, topic string, partition int32     (LegacyOffsetCommit, OffsetCommit)
      2                           group string                                    (GroupMetadata)
      3 4 6 9 11 12 15 17 18 20 23   groupId string
      5 7 8 10 13 14 19 21 22        groupId string, memberId string
      16                          groupId string, regularExpression string

Types 3 to 23 are those of KIP-848, share and streams groups (`CoordinatorRecordType`, read in Kafka
4.2.0-rc1; 9 and 18 were written by earlier or unreleased code only). Before Kafka 4.1 the source calls the
type "key version"; the bytes are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.offsets_log.rejected import Rejected
from streaming.offsets_log.wire import MalformedError, Reader

__all__ = [
    "EXPRESSION_TYPE",
    "GROUP_METADATA",
    "LEGACY_OFFSET_COMMIT",
    "OFFSET_COMMIT",
    "GroupKey",
    "Key",
    "OffsetKey",
    "OtherKey",
    "UnknownKey",
    "decode_key",
    "offset_commit_key",
    "offset_commit_parts",
]

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2

_WITH_GROUP = frozenset({3, 4, 6, 9, 11, 12, 15, 17, 18, 20, 23})
_WITH_GROUP_AND_MEMBER = frozenset({5, 7, 8, 10, 13, 14, 19, 21, 22})
EXPRESSION_TYPE = 16


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
    """Key of a type that this codec does not know: a newer broker wrote it, or junk."""

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
    reader = Reader(data)
    try:
        key_type = reader.int16("key type")
        key = _body(key_type, reader)
        if not isinstance(key, UnknownKey):
            reader.end("key")
    except MalformedError as error:
        return Rejected(f"key: {error}")
    return key


def offset_commit_parts(data: bytes) -> tuple[str, str, int] | None:
    """Group, topic and partition of a key of type 1 in one step: the commonest key, met first in every batch.

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
            OFFSET_COMMIT.to_bytes(2, "big"),
            len(group).to_bytes(2, "big"),
            group,
            len(topic).to_bytes(2, "big"),
            topic,
            key.partition.to_bytes(4, "big"),
        )
    )


def _body(key_type: int, reader: Reader) -> OffsetKey | GroupKey | OtherKey | UnknownKey:
    if key_type in {LEGACY_OFFSET_COMMIT, OFFSET_COMMIT}:
        group, topic, partition = reader.string("group"), reader.string("topic"), reader.int32("partition")
        if partition < 0:
            message = f"partition is {partition}, and no topic has a negative partition"
            raise MalformedError(message)
        return OffsetKey(key_type, group, topic, partition)
    if key_type == GROUP_METADATA:
        return GroupKey(reader.string("group"))
    if key_type in _WITH_GROUP:
        return OtherKey(key_type, reader.string("groupId"), None)
    if key_type in _WITH_GROUP_AND_MEMBER:
        return OtherKey(key_type, reader.string("groupId"), reader.string("memberId"))
    if key_type == EXPRESSION_TYPE:
        return OtherKey(key_type, reader.string("groupId"), reader.string("regularExpression"))
    return UnknownKey(key_type)
