"""The user data of the sticky strategies: which partitions a member had, and in which generation.

`sticky`, version 1: previous_assignment[] {topic string, partitions[] int32}, generation int32; version 0 has no
generation. `cooperative-sticky` of Java: generation int32. Big endian, strings with an int16 length, arrays with an
int32 count; there is no version field. Java tries version 1, then 0, then takes it for nothing
(`StickyAssignor.deserializeTopicPartitionAssignment`).

Every read tells where Java's buffer stands afterwards, whether it succeeded or not: Java before 3.0 reads some
buffers twice without rewinding them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from assignors.model import TopicPartitions

__all__ = [
    "NOTHING",
    "MemberData",
    "read_generation",
    "read_kafka_python",
    "read_sticky",
    "write_kafka_python",
    "write_sticky",
]

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class MemberData:
    """What a member says it had (`AbstractStickyAssignor.MemberData`).

    Attributes:
        partitions: Partitions by topic, in the order of the bytes; a topic may stand twice.
        generation: Generation; None when absent, which is not the same as -1.
    """

    partitions: TopicPartitions
    generation: int | None


NOTHING = MemberData((), None)
_UNREADABLE = MemberData((), -1)


class _Underflow(Exception):
    """Java's buffer has too little left, or holds a length that cannot be."""


class _Buffer:
    """Java's `ByteBuffer` as its schema types read it: a failed read stays where it failed."""

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


def read_sticky(data: bytes | None, position: int = 0) -> tuple[MemberData, int]:
    """Read the user data of `sticky` from a position on: what Java makes of it, and where its buffer then stands.

    Null and empty user data mean no partitions and no generation; unreadable bytes no partitions in generation -1.
    """
    if data is None or position >= len(data):
        return NOTHING, position
    buffer = _Buffer(data, position)
    partitions: TopicPartitions | None = None
    try:
        partitions = buffer.previous_assignment()
        return MemberData(partitions, buffer.int32()), buffer.position
    except _Underflow:
        # Version 0 has no generation; what fails before it is readable as neither version.
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
    """Read the user data of `sticky` as kafka-python from 3.0 on does, which puts the version before it.

    Empty and unreadable bytes, those of Java among them, mean no partitions in generation -1.
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
    """Write the user data of `sticky` as kafka-python from 3.0 on does: the version, 1, before it."""
    return _INT16.pack(1) + write_sticky(partitions, generation)
