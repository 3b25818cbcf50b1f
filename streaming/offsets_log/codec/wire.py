"""Kafka's wire types, read with every bound checked.

Integers are big endian. Two families of encodings (KIP-482 calls the second one flexible):

    type      plain                                flexible ("compact")
    string    int16 length, -1 = null, UTF-8       uvarint length + 1, 0 = null, UTF-8
    bytes     int32 length, -1 = null              uvarint length + 1, 0 = null
    array     int32 count, -1 = null               uvarint count + 1, 0 = null
    struct    its fields                           its fields, then tagged fields:
                                                   uvarint count, then per field uvarint tag, uvarint size,
                                                   that many bytes
    uvarint   -                                    7 bits a byte, least significant first, at most 5 bytes

As in Kafka's generated readers (`MessageDataGenerator`, read in 4.3.1) a string has at most 32,767 bytes, and a length
or count beyond the remaining bytes is an error before anything is allocated. Stricter than Java: UTF-8 must be valid (a
broker encodes strings itself, so its own always are), a tagged field must end where its size says, and the elements of
a record may take `MOST_DECODED` bytes of memory.

UUIDs are printed as `org.apache.kafka.common.Uuid` prints them: URL-safe base64 without padding.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping

_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

# Kafka's limit of any string (`Short.MAX_VALUE`); the flexible encoding could express more, but Java refuses it.
_LONGEST_STRING = 0x7FFF
# A uvarint of Kafka holds 32 bits: seven in each of four bytes, and four in the fifth.
_LONGEST_UVARINT = 5
_LARGEST_UVARINT = 0xFFFF_FFFF


STRUCT_BYTES, ELEMENT_BYTES, INT_BYTES = 400, 100, 40
"""Memory of one element of an array while it is decoded, above its own bytes: of a struct (a member, whose three texts
and the core's value are most of it), of a text or a topic with its partitions, and of a number."""

MOST_DECODED = 64 * 1024 * 1024
"""Memory that the elements of one record may take, by these numbers: half of what a task holds of the log.

Java has no such limit. A coordinator writes a record into one batch, of 1 MB by default (`message.max.bytes`), and what
it writes has names: a megabyte of members (whose ids alone have 37 bytes) takes 7 MB, one of topics 5 MB, and even one
of nothing but partition numbers 10 MB. So records of 6 MB are below this whatever they hold, and those of 9 MB if they
are of members or topics, up to 160,000 members. Without a limit 64 MB of empty members, 6 KB as zstd, take 1.6 GB.
"""


# The two-byte length of a name and the count of its numbers.
_LEAST_NUMBERS = 2 + 4


class MalformedError(Exception):
    """Bytes do not match the schema. Stays inside the codec: its public functions return `Rejected`."""


class Allowance:
    """Memory that the elements of one record have taken, over all readers of its parts."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = 0

    @property
    def exceeded(self) -> bool:
        """Whether they take more than a record may."""
        return self.taken > MOST_DECODED

    def take(self, count: int, each: int, field: str, start: int) -> None:
        """Count elements before they are read; raises `MalformedError` when they are too many."""
        self.taken += count * each
        if self.exceeded:
            message = f"{field} at byte {start} claims {count} elements: more than any coordinator writes into a record"
            raise MalformedError(message)


class Reader:
    """Reads fields one after the other; each call advances by the bytes it read.

    Every method takes the field's name for the message, and raises `MalformedError` when the bytes cannot
    hold the field.
    """

    __slots__ = ("_data", "_end", "allowance", "flexible", "position")

    def __init__(
        self, data: bytes, position: int = 0, *, flexible: bool = False, allowance: Allowance | None = None
    ) -> None:
        self._data = data
        self.allowance = Allowance() if allowance is None else allowance
        self._end = len(data)
        self.position = position
        self.flexible = flexible

    @property
    def remaining(self) -> int:
        """Bytes not yet read."""
        return self._end - self.position

    def _take(self, size: int, field: str) -> int:
        start = self.position
        if size > self._end - start:
            message = f"{field} needs {size} bytes at byte {start}, but {self._end - start} are left"
            raise MalformedError(message)
        self.position = start + size
        return start

    def int8(self, field: str) -> int:
        """One signed byte."""
        value = self._data[self._take(1, field)]
        if value > 127:
            return value - 256
        return value

    def int16(self, field: str) -> int:
        """Two bytes, signed."""
        value: int = _INT16.unpack_from(self._data, self._take(2, field))[0]
        return value

    def uint16(self, field: str) -> int:
        """Two bytes, unsigned."""
        value: int = _UINT16.unpack_from(self._data, self._take(2, field))[0]
        return value

    def int32(self, field: str) -> int:
        """Four bytes, signed."""
        value: int = _INT32.unpack_from(self._data, self._take(4, field))[0]
        return value

    def int64(self, field: str) -> int:
        """Eight bytes, signed."""
        value: int = _INT64.unpack_from(self._data, self._take(8, field))[0]
        return value

    def uuid(self, field: str) -> bytes:
        """The 16 bytes of a UUID."""
        return self.raw(16, field)

    def raw(self, size: int, field: str) -> bytes:
        """`size` bytes as they are."""
        start = self._take(size, field)
        return self._data[start : start + size]

    def uvarint(self, field: str) -> int:
        """An unsigned varint of at most 32 bits."""
        start = self.position
        value = 0
        for index in range(_LONGEST_UVARINT):
            byte = self._data[self._take(1, field)]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value > _LARGEST_UVARINT:
                    break
                return value
        message = f"{field} at byte {start} is a varint of more than 32 bits"
        raise MalformedError(message)

    def nullable_string(self, field: str) -> str | None:
        """A string in the reader's encoding; None when null."""
        start = self.position
        size = self.uvarint(field) - 1 if self.flexible else self.int16(field)
        if size == -1:
            return None
        self._check_size(size, field, start)
        if size > _LONGEST_STRING:
            message = f"{field} at byte {start} has {size} bytes, more than any string of Kafka"
            raise MalformedError(message)
        try:
            return self.raw(size, field).decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"{field} at byte {start} is not valid UTF-8 ({error.reason} at its byte {error.start})"
            raise MalformedError(message) from None

    def string(self, field: str) -> str:
        """A string in the reader's encoding that must not be null."""
        start = self.position
        value = self.nullable_string(field)
        if value is None:
            raise _null(field, start)
        return value

    def nullable_bytes(self, field: str) -> bytes | None:
        """Bytes in the reader's encoding; None when null."""
        start = self.position
        size = self.uvarint(field) - 1 if self.flexible else self.int32(field)
        if size == -1:
            return None
        self._check_size(size, field, start)
        return self.raw(size, field)

    def bytes_(self, field: str) -> bytes:
        """Bytes in the reader's encoding that must not be null."""
        start = self.position
        value = self.nullable_bytes(field)
        if value is None:
            raise _null(field, start)
        return value

    def nullable_count(self, field: str, element_size: int, memory: int) -> int | None:
        """Number of elements of an array; None when it is null.

        Args:
            field: Name of the array.
            element_size: Minimum bytes of one element; more elements than the rest can hold are refused.
            memory: Memory that one takes when decoded, see `MOST_DECODED`.
        """
        start = self.position
        count = self.uvarint(field) - 1 if self.flexible else self.int32(field)
        if count == -1:
            return None
        if count < 0 or count * element_size > self._end - self.position:
            message = f"{field} at byte {start} claims {count} elements, but {self.remaining} bytes are left"
            raise MalformedError(message)
        self.allowance.take(count, memory, field, start)
        return count

    def count(self, field: str, element_size: int, memory: int) -> int:
        """Number of elements of an array that must not be null; see `nullable_count`."""
        start = self.position
        value = self.nullable_count(field, element_size, memory)
        if value is None:
            raise _null(field, start)
        return value

    def int32_array(self, field: str) -> tuple[int, ...]:
        """An array of int32 that must not be null."""
        count = self.count(field, 4, INT_BYTES)
        return struct.unpack_from(f">{count}i", self._data, self._take(4 * count, field))

    def version(self) -> int:
        """The int16 that begins what members exchange; a newer one is read as far as it is known."""
        version = self.int16("version")
        if version < 0:
            message = f"version {version} is negative"
            raise MalformedError(message)
        return version

    def numbers_by_name(
        self, field: str, name: str, numbers: str, *, lowest: int = 0, nullable: bool = False
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """An array of names with numbers each: topics with partitions, or connectors with tasks.

        Args:
            field: Name of the array.
            name: Name of the string in an element.
            numbers: Name of its array of int32.
            lowest: The lowest number. Java would accept others; but no assignor gives them, and a verdict on one would
                be a guess.
            nullable: Null stands for no element.
        """
        count = self.nullable_count if nullable else self.count
        found = []
        for _ in range(count(field, _LEAST_NUMBERS, ELEMENT_BYTES) or 0):
            named, of = self.string(name), self.int32_array(numbers)
            if of and min(of) < lowest:
                message = f"{min(of)} in {numbers} of {field} is below {lowest}"
                raise MalformedError(message)
            found.append((named, of))
        return tuple(found)

    def tagged_fields(self, known: Mapping[int, Callable[[Reader], object]]) -> dict[int, object]:
        """The tagged fields that end a struct; unknown tags are skipped by their size. Nothing if not flexible.

        Args:
            known: How to read the payload of each known tag; it must take exactly the bytes of its size.

        Returns:
            The value by tag; for a tag that appears twice the last one, as in Java.
        """
        found: dict[int, object] = {}
        if not self.flexible:
            return found
        start, count = self.position, self.uvarint("count of tagged fields")
        self.allowance.take(count, ELEMENT_BYTES, "count of tagged fields", start)
        for _ in range(count):
            tag = self.uvarint("tag")
            size = self.uvarint(f"size of tag {tag}")
            payload = self._take(size, f"tag {tag}")
            if tag in known:
                found[tag] = self._inside(known[tag], payload, tag)
        return found

    def _inside(self, read: Callable[[Reader], object], start: int, tag: int) -> object:
        """Read the payload of a tag, which extends from `start` to the reader's position."""
        outer, stop = self._end, self.position
        self._end, self.position = stop, start
        try:
            value = read(self)
        except MalformedError as error:
            message = f"tag {tag}: {error}"
            raise MalformedError(message) from None
        finally:
            self._end = outer
        if self.position != stop:
            message = (
                f"tag {tag} at byte {start} has {stop - start} bytes, of which its field takes {self.position - start}"
            )
            raise MalformedError(message)
        return value

    def end(self, what: str) -> None:
        """Require the end: trailing bytes mean that the layout is another than the version claims."""
        if self.position != self._end:
            message = f"{self.remaining} bytes follow the end of the {what} at byte {self.position}"
            raise MalformedError(message)

    def _check_size(self, size: int, field: str, start: int) -> None:
        if size < 0 or size > self._end - self.position:
            message = f"{field} at byte {start} claims {size} bytes, but {self.remaining} are left"
            raise MalformedError(message)


def _null(field: str, start: int) -> MalformedError:
    return MalformedError(f"{field} at byte {start} is null, which its schema does not allow")


ZERO = bytes(16)


def printed(topic_id: bytes) -> str | None:
    """Print 16 bytes as Kafka does; None for the zero id, which stands for "not known"."""
    if topic_id == ZERO:
        return None
    return text_of(topic_id)


def text_of(uuid: bytes) -> str:
    """Print 16 bytes as Kafka prints a UUID, the zero one too."""
    return urlsafe_b64encode(uuid)[:22].decode("ascii")
