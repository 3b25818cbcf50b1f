"""The records inside a record batch, one by one.

Readers of records call `walk`, and need not know how a batch is decoded.

Layout of a batch of magic 2 after its header of 61 bytes (KIP-98), one record after the other, uncompressed or
compressed as a whole; varints are zigzag, of 32 bits, and of 64 for the timestamp:

    varint   length of what follows
    int8     attributes, unused
    varlong  timestamp, minus the batch's first
    varint   offset, minus the batch's first
    varint   key length, -1 for null; key
    varint   value length, -1 for null; value
    varint   number of headers; headers (skipped)

Numbers are read as Java reads them: `ByteUtils.readVarint` and `readVarlong` (Kafka 4.3.1) drop bits beyond 32 or 64,
and refuse a number that has not ended after 5 or 10 bytes; the sum of the two timestamps wraps at 64 bits
(`DefaultRecord.readFrom`). So a batch can begin at -2^63 and have a record of today, and no timestamp is beyond an
int64.

Stricter than Java (4.3.1): offsets must ascend within the range that the header tells; compaction leaves gaps, and
nothing else. Brokers check that range of a batch from a client; they rewrite the offsets in it where the batch or the
topic is compressed, and do not look at them otherwise (`LogValidator`). Java's consumer passes over records that go
back, and returns those beyond the range (`CompletedFetch.nextFetchedRecord`). Here a record at an offset that is not
its own could hide others, or move a reader beyond them.

kafka-python's own classes take two to three times as long for the same; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

from streaming.record_batches.batches import FetchedBatch, decompressed

Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp in ms, key, value; key and value as bytes, or None when null."""

# Bits before the last byte of the longest numbers: five bytes for 32 bits, ten for 64.
_INT32, _INT64 = 28, 63

# Timestamps wrap here.
_FAR = 2**63


def walk(batch: FetchedBatch, start: int, end: int) -> Iterator[Record]:
    """Yield the records of a batch with offsets in [start, end), in order; can be called once per batch.

    A range may begin and end inside a batch, so both ends are trimmed.

    Raises:
        CorruptRecordError: The bytes of the batch are not such records. No record was yielded before: a batch is
            refused as a whole, wherever a range begins and ends.
    """
    if isinstance(batch.records, DefaultRecordBatch):
        records = _walk(batch.records)
    else:
        # Those of an older format raise here.
        records = ((record.offset, record.timestamp, record.key, record.value) for record in batch.records)
    if start <= batch.base_offset and batch.offset < end:
        return records
    return _trimmed(records, start, end)


def _trimmed(records: Iterator[Record], start: int, end: int) -> Iterator[Record]:
    for record in records:
        if record[0] >= end:
            return
        if record[0] >= start:
            yield record


def _walk(batch: Any) -> Iterator[Record]:
    data = _in_the_clear(batch)
    at, last = 0, -1
    base, first_time = batch.base_offset, batch.first_timestamp
    append_time = batch.max_timestamp if batch.timestamp_type == DefaultRecordBatch.LOG_APPEND_TIME else None
    size, most, early, late = len(data), batch.last_offset - base, -_FAR, _FAR
    records: list[Record] = []
    note = records.append
    try:
        for _ in range(batch.records_count):
            byte = data[at]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                length, at = _varint(data, at, _INT32)
            after = at + length
            at += 1
            byte = data[at]
            if byte < 0x80:
                time, at = first_time + ((byte >> 1) ^ -(byte & 1)), at + 1
            else:
                time, at = _varint(data, at, _INT64)
                time += first_time
            byte = data[at]
            if byte < 0x80:
                offset, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                offset, at = _varint(data, at, _INT32)
            byte = data[at]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                length, at = _varint(data, at, _INT32)
            key = None
            if length >= 0:
                key = data[at : at + length]
                at += length
            byte = data[at]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                length, at = _varint(data, at, _INT32)
            value = None
            if length >= 0:
                value = data[at : at + length]
                at += length
            if not at < after <= size:
                _corrupt(f"the record at offset {base + offset} does not fit its length")
            if not last < offset <= most:
                _corrupt(f"offset {base + offset}, behind {base + last}, is out of order or beyond the batch")
            at, last = after, offset
            if append_time is not None:
                time = append_time
            elif not early <= time < late:
                time = (time + _FAR) % (2 * _FAR) - _FAR
            note((base + offset, time, key, value))
    except IndexError:
        _corrupt("its bytes end inside a record")
    if at != size:
        _corrupt(f"{size - at} bytes are left after its last record")
    yield from records


def _in_the_clear(batch: Any) -> bytes:
    # Partly private, like everything that reads whole batches (see whole_batches.py).
    body = memoryview(batch._buffer)[batch._pos :]  # noqa: SLF001
    return bytes(decompressed(batch.compression_type, body))


def _varint(data: bytes, at: int, longest: int) -> tuple[int, int]:
    """A number of two bytes and more, and where it ends."""
    value, byte = data[at] & 0x7F, data[at + 1]
    at, shift = at + 2, 7
    while byte >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > longest:
            _corrupt("a varint does not end")
        byte = data[at]
        at += 1
    value |= byte << shift
    if shift == longest:
        value &= 0xFFFF_FFFF if longest == _INT32 else 0xFFFF_FFFF_FFFF_FFFF
    return (value >> 1) ^ -(value & 1), at


def _corrupt(message: str) -> None:
    raise CorruptRecordError(message)
