"""Reads on behind a task's shares, until the groups that a compacted stretch concerns are known.

A stretch often ends far behind the share in which it begins or continues: over a backlog every batch would read the
rest of it again. So the process remembers where a stretch was found to end. It relies on that only if the record that
showed the end is still there (`StretchEnd`), which it checks after the share was read: one small read per batch. A
process without this memory, as after a restart or where a partition moves to another worker, reads on by itself, and
finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

import numpy as np
from kafka import TopicPartition
from kafka.errors import CorruptRecordError

from streaming.job.source.columnar_records import pieces
from streaming.job.source.fetch import TO_THE_END, Gone, OffsetRange, RangeReader
from streaming.offsets_log import CompactedStretches, RecordColumns, StretchEnd
from streaming.record_batches import FetchedBatch, FetchedRun, Missing, walk

# By reader, of which there is one per cluster: the newest end found of each partition. Has a name per group in it.
_FOUND: WeakKeyDictionary[RangeReader, dict[TopicPartition, StretchEnd]] = WeakKeyDictionary()


def read_on(reader: RangeReader, topic: str, shares: Mapping[int, tuple[CompactedStretches, int]]) -> None:
    """Read every open stretch up to its end, or to that of the log.

    Args:
        reader: Reader of this process.
        topic: The offsets log.
        shares: By partition, what was found in its share, and the share's exclusive end.

    Raises:
        UnreadableTopicError: The brokers returned nothing for too long.
    """
    found = _FOUND.setdefault(reader, {})
    partitions = {TopicPartition(topic, partition): share for partition, share in shares.items()}
    for tp, (_, since) in partitions.items():
        if tp in found and found[tp].end < since:
            del found[tp]
    partitions = {tp: share for tp, share in partitions.items() if share[0].open}
    if not partitions:
        return
    kept = {tp: found[tp] for tp, (_, since) in partitions.items() if tp in found and found[tp].first <= since}
    there = _there(reader, kept)
    for tp, (stretches, since) in partitions.items():
        if tp in there:
            stretches.end_at(kept[tp], since)
            continue
        found.pop(tp, None)
        _follow(stretches, reader, OffsetRange(topic, tp.partition, since, TO_THE_END))
        if not stretches.open and stretches.newest_end is not None:
            found[tp] = stretches.newest_end


def _there(reader: RangeReader, ends: Mapping[TopicPartition, StretchEnd]) -> set[TopicPartition]:
    """The partitions whose record that showed the end is still there."""
    found = set()
    wanted = [OffsetRange(p.topic, p.partition, end.record, end.record + 1) for p, end in ends.items()]
    for where, item in reader.read_runs(wanted):
        tp = TopicPartition(where.topic, where.partition)
        if isinstance(item, FetchedRun | FetchedBatch) and (ends[tp].record, ends[tp].key) in _keys(where, item):
            found.add(tp)
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
    """Offsets and keys of the records; undecodable ones are reported by the batch that they belong to."""
    for piece in pieces(item, where.start, where.end):
        if isinstance(piece, RecordColumns):
            yield from zip(piece.offset.tolist(), piece.keys(np.arange(len(piece), dtype=np.int64)), strict=True)
            continue
        try:
            for offset, _, key, _ in walk(piece, where.start, where.end):
                yield offset, key
        except CorruptRecordError:
            continue
