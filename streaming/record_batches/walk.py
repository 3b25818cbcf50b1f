"""The records inside a record batch, one by one.

Readers of records call `walk`, and need not know how a batch is decoded.

Layout of a batch of magic 2 after its header of 61 bytes (KIP-98), one record after the other, uncompressed or
compressed as a whole; varints are zigzag:

    varint  length of what follows
    int8    attributes, unused
    varint  timestamp, minus the batch's first
    varint  offset, minus the batch's first
    varint  key length, -1 for null; key
    varint  value length, -1 for null; value
    varint  number of headers; headers (skipped)

kafka-python's own classes take two to three times as long for the same; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch

from streaming.record_batches.batches import FetchedBatch
from streaming.record_batches.decompress import decompressed

Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp in ms, key, value; key and value as bytes, or None when null."""

# A varint of 64 bits has ten bytes; a longer one is invalid.
_LONGEST_VARINT = 70


def walk(batch: FetchedBatch, start: int, end: int) -> Iterator[Record]:
    """Yield the records of a batch with offsets in [start, end), in order; can be called once per batch.

    A range may begin and end inside a batch, so both ends are trimmed.

    Raises:
        CorruptRecordError: The bytes of the batch are not such records (those before the broken one were yielded), or
            it is larger than `MAX_CLEAR_BYTES` (none was).
    """
    if isinstance(batch.records, DefaultRecordBatch):
        records = _walk(batch.records)
    else:
        # (Messages of magic 0 have no time.)
        records = (
            (record.offset, -1 if record.timestamp is None else record.timestamp, record.key, record.value)
            for record in batch.records
        )
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
    base, first_time = batch.base_offset, batch.first_timestamp
    append_time = batch.max_timestamp if batch.timestamp_type == DefaultRecordBatch.LOG_APPEND_TIME else None
    size, at = len(data), 0
    try:
        for _ in range(batch.records_count):
            byte = data[at]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                length, at = _varint(data, at)
            after = at + length
            at += 1
            byte = data[at]
            if byte < 0x80:
                time, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                time, at = _varint(data, at)
            byte = data[at]
            if byte < 0x80:
                offset, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                offset, at = _varint(data, at)
            byte = data[at]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                length, at = _varint(data, at)
            key = None
            if length >= 0:
                key = data[at : at + length]
                at += length
            byte = data[at]
            if byte < 0x80:
                length, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                length, at = _varint(data, at)
            value = None
            if length >= 0:
                value = data[at : at + length]
                at += length
            if not at < after <= size:
                _corrupt(f"the record at offset {base + offset} does not fit its length")
            at = after
            yield base + offset, first_time + time if append_time is None else append_time, key, value
    except IndexError:
        _corrupt("its bytes end inside a record")
    if at != size:
        _corrupt(f"{size - at} bytes are left after its last record")


def _in_the_clear(batch: Any) -> bytes:
    # Partly private, like everything that reads whole batches (see whole_batches.py).
    body = memoryview(batch._buffer)[batch._pos :]  # noqa: SLF001
    return bytes(decompressed(batch.compression_type, body))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift >= _LONGEST_VARINT:
            _corrupt("a varint does not end")
    value |= byte << shift
    return (value >> 1) ^ -(value & 1), at + 1


def _corrupt(message: str) -> None:
    raise CorruptRecordError(message)
