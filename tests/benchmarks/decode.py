"""How many offset commits per second one core decodes and folds, from records in memory.

They have the form that the job's source passes on: the columns of a fetch (`RecordColumns`) exist before the clock
starts; the cost of finding them in record batches is part of `reading`.

The mix is a broker's: 1,000 groups of 50 partitions each, value v3 (Kafka 2.1 to 4.0) and v4 with a topic id (from 4.1)
half each, empty metadata in nine of ten, committed in rounds so that keys recur as in a real log.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from streaming.offsets_log import PADDING, Compactor, RecordColumns

__all__ = ["records_per_second"]

_GROUPS = 1_000
_PARTITIONS = 50
# A dozen commits per partition: a minute of auto-commits every 5 seconds, and a second of work.
_RECORDS = 600_000
# The size of the source's chunks: records in a fetch of a megabyte or two.
_FETCHED = 10_000
_START = 1_700_000_000_000

_Record = tuple[int, int, bytes, bytes]


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode("ascii")


def _records(count: int) -> Iterator[_Record]:
    keys = []
    for group in range(_GROUPS):
        topic = f"orders-{group % 37}"
        for partition in range(_PARTITIONS):
            name = _string(f"checkout-service-{group}")
            keys.append(struct.pack(">h", 1) + name + _string(topic) + struct.pack(">i", partition))
    topic_id = hashlib.sha256(b"orders").digest()[:16]
    for index in range(count):
        lap, place = divmod(index, len(keys))
        now = _START + index
        metadata = b"" if index % 10 else b"host-17/app"
        head = 1_000_000 + 37 * lap, 12
        if place % 2:
            value = struct.pack(">hqih", 3, *head, len(metadata)) + metadata + struct.pack(">q", now)
        else:
            tags = b"\x01\x00\x10" + topic_id
            size = bytes([len(metadata) + 1])
            value = struct.pack(">hqi", 4, *head) + size + metadata + struct.pack(">q", now) + tags
        yield index, now, keys[place], value


def _columns(records: list[_Record]) -> RecordColumns:
    """Records in one buffer, one after the other, as in a record batch."""
    data = bytearray()
    places = []
    for _, _, key, value in records:
        places.append((len(data), len(key), len(data) + len(key), len(value)))
        data += key + value
    data += bytes(PADDING)
    return RecordColumns(
        np.frombuffer(data, np.uint8),
        np.array([offset for offset, *_ in records], np.int64),
        np.array([time_ms for _, time_ms, *_ in records], np.int64),
        *np.array(places, np.int64).T.copy(),
    )


def _all(_: str) -> bool:
    return True


def records_per_second(count: int = _RECORDS) -> float:
    """Records decoded and folded per second of processor time, by the one thread that runs.

    Args:
        count: Number of records to create and fold; creating them is not timed.
    """
    # All records are in one partition: the partition of a group is computed once per group.
    compactor = Compactor(0, 1, range(count // 6, count, count // 6), _all, _all)
    spent = 0.0
    records = _records(count)
    while batch := list(islice(records, _FETCHED)):
        columns = _columns(batch)
        started = time.thread_time()
        compactor.add_columns(columns)
        spent += time.thread_time() - started
    started = time.thread_time()
    windows = sum(len(inputs) for _, inputs in compactor.groups())
    spent += time.thread_time() - started
    if not windows or compactor.unreadable():
        message = "the benchmark's own records did not decode; its figure would mean nothing"
        raise RuntimeError(message)
    return count / spent


if __name__ == "__main__":
    best = max(records_per_second() for _ in range(3))
    print(f"decode and fold offset commits: {best:,.0f} records/s, one core")
