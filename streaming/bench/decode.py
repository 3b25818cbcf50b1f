"""How many offset commits a second one core decodes and folds, from key and value bytes in memory.

The mix is what a broker writes: 1,000 groups of 50 partitions each, value v3 (Kafka 2.1 to 4.0) and v4 with a
topic id (from 4.1) in halves, empty metadata in nine of ten, committed in rounds so that keys come back as in
a real log.
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Iterator
from itertools import islice

from streaming.offsets_log import Compactor

__all__ = ["records_per_second"]

_GROUPS = 1_000
_PARTITIONS = 50
# A dozen commits of each partition: what a minute of 5-second auto commits leaves, and a second of work.
_RECORDS = 600_000
# As the source hands them on: a fetch, fresh from the wire, in record batches.
_FETCHED = 10_000
_BATCH = 50
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
        # A key of its own, as from the wire: its hash is not known yet.
        yield index, now, bytes(bytearray(keys[place])), value


def _all(_: str) -> bool:
    return True


def records_per_second(count: int = _RECORDS) -> float:
    """Records decoded and folded per second of processor time, by the one thread that runs.

    Args:
        count: Records to make and fold; making them is not timed.
    """
    # One partition holds everything: where a group belongs is looked up once per group.
    compactor = Compactor(0, 1, range(count // 6, count, count // 6), _all, _all)
    spent = 0.0
    records = _records(count)
    while batch := list(islice(records, _FETCHED)):
        offsets, times, keys, values = zip(*batch, strict=True)
        started = time.thread_time()
        for at in range(0, len(batch), _BATCH):
            end = at + _BATCH
            compactor.add_many(offsets[at:end], times[at:end], keys[at:end], values[at:end])
        spent += time.thread_time() - started
    started = time.thread_time()
    windows = sum(len(inputs) for _, inputs in compactor.groups())
    spent += time.thread_time() - started
    if not windows or compactor.unread():
        message = "the benchmark's own records did not decode; its figure would mean nothing"
        raise RuntimeError(message)
    return count / spent


if __name__ == "__main__":
    best = max(records_per_second() for _ in range(3))
    print(f"decode and fold offset commits: {best:,.0f} records/s, one core")
