"""Record batches from before magic 2, which brokers keep for as long as their topics exist.

A compressed one is a message whose value holds the others (KIP-31, KIP-32); its own offset is the last of theirs.
Layout of such a message, big-endian:

    int64 offset, int32 length of what follows, uint32 checksum, int8 magic, int8 attributes, (magic 1) int64 timestamp,
    int32 key length, -1 for null; key, int32 value length; value
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from kafka.errors import CorruptRecordError, KafkaError

from streaming.record_batches.batches import FetchedBatch
from streaming.record_batches.decompress import decompressed

__all__ = ["old_batch"]

# kafka-python lists all messages of a batch before it returns the first, at ten times their bytes. Writers of that time
# filled batches of 1 MB.
_MOST_BYTES = 8 * 1024 * 1024

_KEY_AT = (18, 26)
"""Position of the key, by magic."""

_LZ4 = 3

_NO_TIME = -1
"""kafka-python's value for a message without a timestamp."""

_int32 = struct.Struct(">i").unpack_from


def old_batch(batch: Any, expected: int) -> FetchedBatch:
    """A batch from kafka-python, decompressed; never raises, whatever the topic holds.

    Args:
        batch: A `LegacyRecordBatch`.
        expected: The requested offset.
    """
    last = batch.base_offset
    records: Iterable[Any]
    try:
        if batch.compression_type:
            # Partly private, like everything that reads whole batches (see whole_batches.py).
            batch._buffer = memoryview(_in_the_clear(batch))  # noqa: SLF001
            batch._decompressed = True  # noqa: SLF001
        records = list(batch)
    except (KafkaError, AssertionError, IndexError, ValueError, struct.error) as error:
        said = error.args[0] if error.args else type(error).__name__
        return FetchedBatch(min(expected, last), last, _NO_TIME, _broken(str(said)))
    if not records:
        return FetchedBatch(last, last, _NO_TIME, ())
    time = records[-1].timestamp
    return FetchedBatch(records[0].offset, records[-1].offset, _NO_TIME if time is None else time, records)


def _in_the_clear(batch: Any) -> bytes | memoryview:
    if batch.compression_type == _LZ4 and batch.magic == 0:
        message = "LZ4 in messages of magic 0 has a wrong checksum, and no decoder for it is installed"
        raise CorruptRecordError(message)
    data = batch._buffer  # noqa: SLF001
    at = _KEY_AT[batch.magic]
    (key_size,) = _int32(data, at)
    at += 4 + max(key_size, 0)
    (size,) = _int32(data, at)
    if size < 0:
        message = "a compressed message without a value"
        raise CorruptRecordError(message)
    return decompressed(batch.compression_type, data[at + 4 : at + 4 + size], _MOST_BYTES)


def _broken(message: str) -> Iterator[Any]:
    raise CorruptRecordError(message)
    yield
