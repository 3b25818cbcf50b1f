"""The records inside a record batch, one by one.

This is a seam: whoever reads records calls `walk`, and knows nothing of how a batch is taken apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from streaming.job.source.fetch import FetchedBatch

__all__ = ["Record", "walk"]

Record = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp in ms, key, value; key and value as bytes, or None when null."""


def walk(batch: FetchedBatch, start: int, end: int) -> Iterator[Record]:
    """Give the records of a batch with offsets in [start, end), in order.

    A range may begin and end inside a batch, so both ends are trimmed.

    Raises:
        kafka.errors.CorruptRecordError: The bytes of the batch hold no such records.
        kafka.errors.UnsupportedCodecError: The codec's package is missing.
    """
    for record in batch.records:
        offset = record.offset
        if offset >= end:
            return
        if offset >= start:
            yield offset, record.timestamp, record.key, record.value
