"""Reads on behind a task's shares, until it is clear whom a compacted stretch concerns.

A stretch often ends far behind the share in which it begins or goes on: over a backlog every batch would read the rest
of it once more. So the process keeps where a stretch was found to end. That is only believed where the record is still
there by which it was found (`StretchEnd`), which is asked after the share was read: one small read a batch. A process
that has nothing kept, as after a restart or where a partition comes to another worker, reads on for itself, and finds
the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

import numpy as np
from kafka import TopicPartition
from kafka.errors import CorruptRecordError

from streaming.job.source.columnar_records import pieces
from streaming.job.source.fetch import (
    TO_THE_END,
    FetchedBatch,
    FetchedRun,
    Gone,
    Missing,
    OffsetRange,
    RangeReader,
)
from streaming.offsets_log import CompactedStretches, RecordColumns, StretchEnd
from streaming.record_batches import walk

__all__ = ["read_on"]

# By the reader, which is one cluster's: the newest end found of each partition. Holds a name per group in the stretch.
_FOUND: WeakKeyDictionary[RangeReader, dict[TopicPartition, StretchEnd]] = WeakKeyDictionary()


def read_on(reader: RangeReader, topic: str, shares: Mapping[int, tuple[CompactedStretches, int]]) -> None:
    """Bring every stretch that is open to its end, or to that of the log.

    Args:
        reader: Reader of this process.
        topic: The offsets log.
        shares: By partition what was found in its share, and the share's exclusive end.

    Raises:
        UnreadableTopicError: The brokers gave nothing for too long.
    """
    found = _FOUND.setdefault(reader, {})
    places = {TopicPartition(topic, partition): share for partition, share in shares.items()}
    for place, (_, since) in places.items():
        if place in found and found[place].end < since:
            del found[place]
    places = {place: share for place, share in places.items() if share[0].open}
    if not places:
        return
    kept = {
        place: found[place] for place, (_, since) in places.items() if place in found and found[place].first <= since
    }
    there = _there(reader, kept)
    for place, (stretches, since) in places.items():
        if place in there:
            stretches.end_at(kept[place], since)
            continue
        found.pop(place, None)
        _follow(stretches, reader, OffsetRange(topic, place.partition, since, TO_THE_END))
        if not stretches.open and stretches.newest_end is not None:
            found[place] = stretches.newest_end


def _there(reader: RangeReader, ends: Mapping[TopicPartition, StretchEnd]) -> set[TopicPartition]:
    """The partitions in which the record by which the end was found is still there."""
    found = set()
    wanted = [OffsetRange(p.topic, p.partition, end.record, end.record + 1) for p, end in ends.items()]
    for where, item in reader.read_runs(wanted):
        place = TopicPartition(where.topic, where.partition)
        if isinstance(item, FetchedRun | FetchedBatch) and (ends[place].record, ends[place].key) in _keys(where, item):
            found.add(place)
    return found


def _follow(stretches: CompactedStretches, reader: RangeReader, rest: OffsetRange) -> None:
    for where, item in reader.read_runs([rest]):
        if isinstance(item, Missing):
            stretches.missing(item.first, item.last)
        elif not isinstance(item, Gone):
            for offset, key in _keys(where, item):
                stretches.add(offset, key)
        if not stretches.open:
            break


def _keys(where: OffsetRange, item: FetchedRun | FetchedBatch) -> Iterator[tuple[int, bytes | None]]:
    """Offsets and keys of the records; what cannot be taken apart is told by the batch that it belongs to."""
    for piece in pieces(item, where.start, where.end):
        if isinstance(piece, RecordColumns):
            yield from zip(piece.offset.tolist(), piece.keys(np.arange(len(piece), dtype=np.int64)), strict=True)
            continue
        try:
            for offset, _, key, _ in walk(piece, where.start, where.end):
                yield offset, key
        except CorruptRecordError:
            continue
