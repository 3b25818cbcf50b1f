"""The unreadable records of a partition, as rows of the source under the partition's key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka.errors import CorruptRecordError

from streaming.offsets_log import LogRecord
from streaming.record_batches import FetchedBatch
from streaming.records import (
    CountedRecords,
    LogGap,
    PartitionInput,
    WindowEnd,
    encode_partition_inputs,
    partition_key,
)

ROW_BYTES = 512 * 1024
"""Approximate limit of a row: a row with all inputs of a key could outgrow an Arrow batch."""


def partition_rows(topic: str, partition: int, inputs: Iterable[PartitionInput]) -> Iterator[tuple[str, bytes]]:
    """Rows of the source, each a key and its packed inputs."""
    key = partition_key(topic, partition)
    size = 0
    chunk: list[PartitionInput] = []
    for item in inputs:
        chunk.append(item)
        size += _size(item)
        if size >= ROW_BYTES:
            yield key, encode_partition_inputs(chunk)
            chunk, size = [], 0
    if chunk:
        yield key, encode_partition_inputs(chunk)


def unwalkable(batch: FetchedBatch, error: CorruptRecordError) -> tuple[LogRecord, str]:
    """A batch that cannot be decoded: the record that stands for it, and the reason."""
    said = error.args[0] if error.args else error
    reason = f"the record batch of offsets {batch.base_offset} to {batch.offset} cannot be taken apart: {said}"
    return LogRecord(batch.base_offset, batch.timestamp, None, None), reason


def _size(item: PartitionInput) -> int:
    if isinstance(item, LogGap | WindowEnd):
        return 0
    record = item.sample if isinstance(item, CountedRecords) else item
    return len(record.key or b"") + len(record.value or b"") + 200
