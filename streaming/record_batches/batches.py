"""The record batches of one fetch response, found by their headers alone.

Header of a batch of magic 2 (KIP-98), 61 bytes, big-endian:

    int64 base offset, int32 length of what follows, int32 leader epoch, int8 magic, uint32 checksum,
    int16 attributes, int32 last offset delta, int64 first timestamp, int64 max timestamp,
    int64 producer id, int16 producer epoch, int32 base sequence, int32 number of records

Only the lengths are followed in Python, one step per batch, because each gives the start of the next batch; all other
fields are then read for all batches at once.
"""

from __future__ import annotations

import gzip
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard
from kafka import codec
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

from streaming.offsets_log import Ints, rows_at

HEADER = 61
"""Bytes of a header."""

CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Bits of a header's attributes."""

# Bytes of base offset and length, which the length does not include.
_OVERHEAD = 12

# The shortest possible batches after these: of magic 0 (checksum, magic, attributes, null key, null value), and of
# magic 2 (the rest of its header).
_LEAST_OLD = 14
_LEAST_LENGTH = HEADER - _OVERHEAD

_MAGIC_AT = 16
_OLD_MAGICS = (0, 1, *range(0x80, 0x100))
"""As in kafka-python (`MemoryRecords.next_batch`): all below 2, signed."""

_length = struct.Struct(">i").unpack_from

_FIELDS = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("first_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records", ">i4"),
    ]
)


# A new decompressor for each batch, as kafka-python makes one, takes twenty times as long as a batch of ten records,
# and one may not be used by two threads.
_OF_THREAD = threading.local()


def _zstd_decode(body: bytes) -> bytes:
    if not hasattr(_OF_THREAD, "zstd"):
        _OF_THREAD.zstd = zstandard.ZstdDecompressor()
    return bytes(_OF_THREAD.zstd.decompressobj(read_across_frames=True).decompress(body))


_CODECS: dict[int, Callable[[bytes], bytes]] = {
    1: gzip.decompress,
    2: codec.snappy_decode,
    3: codec.lz4_decode,
    4: _zstd_decode,
}


def decompressed(number: int, body: memoryview) -> bytes | memoryview:
    """Decompress everything after a batch's header.

    Args:
        number: Number of the codec, from the attributes; 0 for none.
        body: Everything after the header.

    Raises:
        CorruptRecordError: There is no such codec, or the bytes do not follow it.
    """
    if not number:
        return body
    if number not in _CODECS:
        message = f"there is no codec {number}"
        raise CorruptRecordError(message)
    try:
        return _CODECS[number](bytes(body))
    except Exception as error:  # each package has its own exceptions, and here all mean the same
        message = f"it cannot be decompressed: {error}"
        raise CorruptRecordError(message) from error


@dataclass(frozen=True, slots=True)
class Missing:
    """Offsets that a log no longer has although it has lower ones: compaction removed them.

    Attributes:
        first: The first missing offset, or a lower one in the same batch.
        last: The last missing offset, or a higher one in the same batch.
    """

    first: int
    last: int

    @property
    def offset(self) -> int:
        """The last offset, as for a batch."""
        return self.last

    def between(self, start: int, end: int) -> Missing | None:
        """The part within [start, end)."""
        first, last = max(self.first, start), min(self.last, end - 1)
        if first <= last:
            return Missing(first, last)
        return None


class FetchedBatch:
    """One record batch.

    Attributes:
        offset: Offset of its last record, even if compaction removed that record. The fetcher compares it with the
            requested offset, so it must be the last one: a range may begin inside a batch.
        base_offset: Offset of its first record, likewise.
        timestamp: Largest timestamp in it, ms.
        records: Its records, to be iterated once.
    """

    __slots__ = ("base_offset", "offset", "records", "timestamp")

    def __init__(self, base_offset: int, offset: int, timestamp: int, records: Iterable[Any]) -> None:
        self.base_offset = base_offset
        self.offset = offset
        self.timestamp = timestamp
        self.records = records

    def between(self, start: int, end: int) -> FetchedBatch | None:
        """The batch itself if it overlaps [start, end)."""
        if start <= self.offset and self.base_offset < end:
            return self
        return None


@dataclass(frozen=True, slots=True)
class FetchedRun:
    """Record batches of magic 2 from one response, in log order; at least one. One element per batch.

    Attributes:
        data: The response, or a part of it.
        start: Where the header begins in `data`.
        size: Bytes with the header.
        first_offset: Offset of the first record, even if compaction removed that record.
        last_offset: Offset of the last record, likewise.
        first_timestamp: Base of the records' timestamps, ms.
        max_timestamp: Largest timestamp, ms; of all records where the broker set it (`APPEND_TIME`).
        attributes: Bits, see above.
        producer_id: -1 for none.
        leader_epoch: Leader epoch.
        records: Number of records, from the header: negative or far too large in a broken one.
    """

    data: memoryview
    start: Ints
    size: Ints
    first_offset: Ints
    last_offset: Ints
    first_timestamp: Ints
    max_timestamp: Ints
    attributes: Ints
    producer_id: Ints
    leader_epoch: Ints
    records: Ints

    def __len__(self) -> int:
        return int(self.start.size)

    @property
    def offset(self) -> int:
        """Last offset of the last batch; the fetcher compares it with the requested offset."""
        return int(self.last_offset[-1])

    @property
    def base_offset(self) -> int:
        """First offset of the first batch."""
        return int(self.first_offset[0])

    def where(self, mask: npt.NDArray[np.bool_]) -> FetchedRun | None:
        """The batches selected by a mask; None when there are none."""
        if mask.all():
            return self
        if not mask.any():
            return None
        return replace(self, **{name: getattr(self, name)[mask] for name in _COLUMNS})

    def between(self, start: int, end: int) -> FetchedRun | None:
        """The batches that overlap [start, end)."""
        return self.where((self.last_offset >= start) & (self.first_offset < end))

    def part(self, start: int, end: int) -> FetchedRun:
        """Batches [start, end)."""
        return replace(self, **{name: getattr(self, name)[start:end] for name in _COLUMNS})

    def batch(self, row: int) -> FetchedBatch:
        """One batch by itself."""
        start = int(self.start[row])
        records = DefaultRecordBatch(self.data[start : start + int(self.size[row])])
        return FetchedBatch(records.base_offset, records.last_offset, records.max_timestamp, records)

    def batches(self) -> Iterator[FetchedBatch]:
        """All of them, one by one."""
        return map(self.batch, range(len(self)))


_COLUMNS = [field.name for field in fields(FetchedRun)][1:]


def epochs_of(item: FetchedRun | FetchedBatch) -> tuple[Ints, Ints]:
    """First offset and leader epoch of each batch; none for a batch from before magic 2, which has no epoch."""
    if isinstance(item, FetchedRun):
        return item.first_offset, item.leader_epoch
    epochs = [item.records.leader_epoch] if isinstance(item.records, DefaultRecordBatch) else []
    return np.array([item.base_offset] * len(epochs), np.int64), np.array(epochs, np.int64)


def chased(data: memoryview) -> tuple[list[int], bool]:
    """Where the batches of a response begin, and finally where the last whole one ends.

    A response may end inside a batch, which is left out.

    Returns:
        The places, one more than there are batches; and whether all is well: False when the batch that begins at the
        last place has an impossible length.
    """
    size = len(data)
    places = [0]
    note, last = places.append, size - _OVERHEAD
    at = 0
    while at <= last:
        (length,) = _length(data, at + 8)
        after = at + length + _OVERHEAD
        if after > size:
            break
        if length < _LEAST_LENGTH and (length < _LEAST_OLD or data[at + _MAGIC_AT] not in _OLD_MAGICS):
            return places, False
        at = after
        note(at)
    return places, True


def is_old(data: memoryview, places: list[int]) -> bool:
    """Whether one of the batches that begin at these places, of which the last is an end, is from before magic 2."""
    at = np.array(places[:-1], np.int64)
    return bool((np.frombuffer(data, np.int8)[at + _MAGIC_AT] < 2).any())


def run_of(data: memoryview, places: Ints) -> FetchedRun:
    """The batches between these places, all of magic 2 and not shorter than a header."""
    start = places[:-1]
    header = rows_at(np.frombuffer(data, np.uint8), start, HEADER).view(_FIELDS)[:, 0]

    def column(name: str) -> Ints:
        return header[name].astype(np.int64)

    first = column("base_offset")
    return FetchedRun(
        data=data,
        start=start,
        size=np.diff(places),
        first_offset=first,
        last_offset=first + column("last_offset_delta"),
        first_timestamp=column("first_timestamp"),
        max_timestamp=column("max_timestamp"),
        attributes=column("attributes"),
        producer_id=column("producer_id"),
        leader_epoch=column("leader_epoch"),
        records=column("records"),
    )


def missing_from(run: FetchedRun, expected: int) -> Missing | None:
    """The missing offsets in and between batches that follow each other in a log, including control batches.

    Args:
        run: The batches, with none left out.
        expected: Offset at which the first one begins if nothing is missing before it.
    """
    ends = run.last_offset + 1
    if int(run.first_offset[0]) <= expected and int(run.records.sum()) == int(ends[-1] - run.first_offset[0]):
        return None
    begin = np.minimum(np.concatenate(([expected], ends[:-1])), run.first_offset)
    inside = run.records < ends - run.first_offset
    before = begin < run.first_offset
    rows = np.flatnonzero(inside | before)
    if not rows.size:
        return None
    first, last = int(rows[0]), int(rows[-1])
    return Missing(
        int(begin[first] if before[first] else run.first_offset[first]),
        int(run.last_offset[last] if inside[last] else run.first_offset[last] - 1),
    )
