"""The user data of the sticky strategies: a member's partitions, and their generation.

`sticky`, version 1: previous_assignment[] {topic string, partitions[] int32}, generation int32; version 0 has no
generation. `cooperative-sticky` of Java: generation int32. Big endian, strings with an int16 length, arrays with an
int32 count; there is no version field. Java tries version 1, then 0, and otherwise ignores the data
(`StickyAssignor.deserializeTopicPartitionAssignment`).

Every read returns the position of Java's buffer afterwards, whether it succeeded or not: Java before 3.0 reads some
buffers twice without rewinding them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from assignors.model import Subscription, TopicPartitions

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class MemberData:
    """A member's claims (`AbstractStickyAssignor.MemberData`).

    Attributes:
        partitions: Partitions by topic, in the order of the bytes; a topic may occur twice.
        generation: Generation; None when absent, which differs from -1.
    """

    partitions: TopicPartitions
    generation: int | None


NOTHING = MemberData((), None)
_UNREADABLE = MemberData((), -1)


class _Underflow(Exception):
    """Java's buffer has too few bytes left, or contains an impossible length."""


class _Buffer:
    """Java's `ByteBuffer` as its schema types read it: a failed read leaves the position where it failed."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def int32(self) -> int:
        return int(self._number(_INT32))

    def int16(self) -> int:
        return int(self._number(_INT16))

    def length(self, number: struct.Struct) -> int:
        length = self._number(number)
        if not 0 <= length <= len(self.data) - self.position:
            raise _Underflow
        return length

    def previous_assignment(self) -> TopicPartitions:
        return tuple(self._topic() for _ in range(self.length(_INT32)))

    def _topic(self) -> tuple[str, tuple[int, ...]]:
        length = self.length(_INT16)
        topic = self.data[self.position : self.position + length].decode("utf-8", "replace")
        self.position += length
        count = self.length(_INT32)
        left = (len(self.data) - self.position) // 4
        if count > left:
            self.position += 4 * left
            raise _Underflow
        partitions = struct.unpack_from(f">{count}i", self.data, self.position)
        self.position += 4 * count
        return topic, partitions

    def _number(self, number: struct.Struct) -> int:
        if len(self.data) - self.position < number.size:
            raise _Underflow
        value: int = number.unpack_from(self.data, self.position)[0]
        self.position += number.size
        return value


def said_in_subscription(member: Subscription) -> MemberData:
    """A member's claims by its subscription alone: for cooperative strategies of other libraries than Java's."""
    return MemberData(member.owned, -1 if member.generation is None else member.generation)


def read_sticky(data: bytes | None, position: int = 0) -> tuple[MemberData, int]:
    """Read the user data of `sticky` from a position on, as Java does; returns it and the buffer's final position.

    Null and empty user data mean no partitions and no generation; unreadable bytes mean no partitions and generation
    -1.
    """
    if data is None or position >= len(data):
        return NOTHING, position
    buffer = _Buffer(data, position)
    partitions: TopicPartitions | None = None
    try:
        partitions = buffer.previous_assignment()
        return MemberData(partitions, buffer.int32()), buffer.position
    except _Underflow:
        # Version 0 has no generation; bytes that fail before it are unreadable in both versions.
        return _UNREADABLE if partitions is None else MemberData(partitions, None), buffer.position


def read_generation(data: bytes | None, position: int = 0) -> tuple[int | None, int]:
    """Read the user data of Java's `cooperative-sticky`: the generation, None for null, -1 for unreadable."""
    if data is None:
        return None, position
    buffer = _Buffer(data, position)
    try:
        return buffer.int32(), buffer.position
    except _Underflow:
        return -1, buffer.position


def read_kafka_python(data: bytes | None) -> MemberData:
    """Read the user data of `sticky` like kafka-python from 3.0 on, which puts the version in front.

    Empty and unreadable bytes, including Java's, mean no partitions and generation -1.
    """
    buffer = _Buffer(data or b"", 0)
    try:
        version = buffer.int16()
        if version < 0:
            return _UNREADABLE
        partitions = buffer.previous_assignment()
        return MemberData(partitions, buffer.int32() if version else -1)
    except _Underflow:
        return _UNREADABLE


def write_sticky(partitions: TopicPartitions, generation: int | None) -> bytes:
    """Write the user data of `sticky`: version 1, or version 0 without a generation."""
    parts = [_INT32.pack(len(partitions))]
    for topic, numbers in partitions:
        name = topic.encode("utf-8")
        parts.append(_INT16.pack(len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    if generation is not None:
        parts.append(_INT32.pack(generation))
    return b"".join(parts)


def write_kafka_python(partitions: TopicPartitions, generation: int) -> bytes:
    """Write the user data of `sticky` like kafka-python from 3.0 on: with the version, 1, in front."""
    return _INT16.pack(1) + write_sticky(partitions, generation)


def claimed_partitions(member: Subscription) -> TopicPartitions:
    """Partitions that a member of a sticky group claims to own, in its subscription or in its user data."""
    data = member.user_data
    return (*member.owned, *read_sticky(data)[0].partitions, *read_kafka_python(data).partitions)
