"""Reads by a task of a log that someone filled with bombs, in a process with little memory.

`python -m tests.job.source.under_limit SCENARIO [argument]` prints its result as JSON. The limit is on the address
space, in addition to its size after all imports.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import zstandard
from kafka.record.default_records import DefaultRecordBatch

from streaming.job.source import SourceSettings
from streaming.job.source.fetch import OffsetRange
from streaming.job.source.read import arrow_batches, task_rows
from streaming.job.source.tasks import LogShare, SourceTask
from streaming.record_batches import FetchedBatch
from streaming.records import CountedRecords, QuarantinedRecord, decode_inputs, decode_partition_inputs, group_of
from tests.job.source.fake_reader import both

MORE_BYTES = 512 * 1024 * 1024
"""Beyond the imports: a batch of 64 MB with two copies, the log data of tasks (128 MB), responses, Arrow."""

SETTINGS = SourceSettings(cluster="test", kafka={}, offsets_topic="log", events_topic="events")


BATCHES = 11
"""Batches of 60 MB. Together they are 660 MB, more than `MORE_BYTES`: a reader that kept them all would fail."""


def varint(number: int) -> bytes:
    number <<= 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def packed(first: int, records: Iterable[tuple[bytes | None, bytes | None]]) -> FetchedBatch:
    """A batch of magic 2 with these keys and values, compressed with zstd."""
    # (Piece by piece: the limit is meant for the readers.)
    pack, clear = zstandard.ZstdCompressor().compressobj(), bytearray()
    count = 0
    for key, value in records:
        fields = b"".join(b"\x01" if field is None else varint(len(field)) + field for field in (key, value))
        record = b"\x00\x00" + varint(count) + fields + b"\x00"
        clear += pack.compress(varint(len(record)) + record)
        count += 1
    clear += pack.flush()
    header = DefaultRecordBatch.HEADER_STRUCT.pack(
        first, 49 + len(clear), 0, 2, 0, 4, count - 1, 1_000, 1_000, -1, -1, -1, count
    )
    batch = DefaultRecordBatch(header + clear)
    return FetchedBatch(first, first + count - 1, 1_000, batch)


def again(batch: FetchedBatch, first: int) -> FetchedBatch:
    """The same batch at another place of the log. (It begins with its first offset, which no checksum covers.)"""
    moved = first.to_bytes(8, "big") + bytes(batch.records._buffer[8:])  # type: ignore[attr-defined]
    return FetchedBatch(first, first + batch.offset - batch.base_offset, 1_000, DefaultRecordBatch(moved))


class Batches:
    """A reader of one partition that creates its batches when they are read."""

    def __init__(self, *makers: Callable[[int], FetchedBatch]) -> None:
        self._makers = makers

    def read_runs(
        self, ranges: Iterable[OffsetRange], _patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch]]:
        (where,) = ranges
        at = 0
        for make in self._makers:
            batch = make(at)
            at = batch.offset + 1
            yield where, batch

    read = read_runs


def found_in(rows: Iterator[tuple[str, bytes]]) -> dict[str, Any]:
    """Count the rows as they come, without keeping them; they pass through Arrow as in Spark's worker."""
    kept: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    reasons: dict[str, set[str]] = {}
    inputs: Counter[str] = Counter()
    largest = 0
    for batch in arrow_batches(rows):
        for key, payload in zip(batch["key"].to_pylist(), batch["payload"].to_pylist(), strict=True):
            largest = max(largest, len(payload))
            if group_of(key) is not None:
                for item in decode_inputs(payload):
                    inputs[type(item).__name__] += 1
            elif key.startswith("p:"):
                for unreadable in decode_partition_inputs(payload):
                    if isinstance(unreadable, QuarantinedRecord):
                        kept[unreadable.topic] += 1
                        reasons.setdefault(unreadable.topic, set()).add(unreadable.reason)
                    elif isinstance(unreadable, CountedRecords):
                        counted[unreadable.sample.topic] += unreadable.records
    told = {topic: sorted(of_topic) for topic, of_topic in reasons.items()}
    return {"kept": kept, "counted": counted, "reasons": told, "inputs": inputs, "largest": largest}


def junk_in_the_log() -> dict[str, Any]:
    """A million records without a key in each of two batches."""
    junk = packed(0, ((None, None) for _ in range(1_000_000)))
    makers = [lambda at: again(junk, at)] * 2
    share = LogShare(0, 0, 2_000_000, known=True, boundaries=())
    return found_in(task_rows(SourceTask(1, (share,), (), ()), SETTINGS, both(Batches(*makers))))


def keys_in_the_log() -> dict[str, Any]:
    """Broken records with distinct keys and values of 30 KB."""

    def broken(at: int) -> FetchedBatch:
        filler = bytes(30_000)
        return packed(at, ((b"\x00\x01" + b"%09d" % (at + n) + filler, filler) for n in range(1_000)))

    share = LogShare(0, 0, BATCHES * 1_000, known=True, boundaries=())
    return found_in(task_rows(SourceTask(1, (share,), (), ()), SETTINGS, both(Batches(*[broken] * BATCHES))))


SCENARIOS: dict[str, Callable[..., dict[str, Any]]] = {
    act.__name__: act
    for act in (
        junk_in_the_log,
        keys_in_the_log,
    )
}


def main(name: str, *arguments: str) -> None:
    """Run one scenario under the limit."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print(json.dumps(SCENARIOS[name](*arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
