"""The work of a task: fetch its shares, pass them to the codec, return rows.

One row per key: a group's inputs from the log, its observations from the events, and unreadable records under the key
of their partition. A key can come several times; the operator sorts its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from kafka import TopicPartition
from kafka.errors import CorruptRecordError

from streaming.bus import TopicReader
from streaming.job.source.connection import Readers
from streaming.job.source.events import EventReader
from streaming.job.source.settings import SourceSettings
from streaming.job.source.tasks import EventsShare, LogShare, SourceTask
from streaming.offsets_log import CompactedStretches, Compactor, LeaderEpochs, RecordColumns, StretchEnd, partition_for
from streaming.record_batches import (
    TO_THE_END,
    FetchedBatch,
    FetchedRun,
    Gone,
    Missing,
    OffsetRange,
    RangeReader,
    Record,
    epochs_of,
    pieces,
    unwalkable,
    walk,
)
from streaming.records import LogGap, PartitionInput, group_key, partition_key, rows_of, topic_key

# By reader, of which there is one per cluster: the newest end found of each partition. Has a name per group in it.
_FOUND: WeakKeyDictionary[RangeReader, dict[TopicPartition, StretchEnd]] = WeakKeyDictionary()


def read_on(reader: RangeReader, topic: str, shares: Mapping[int, tuple[CompactedStretches, int]]) -> None:
    """Read every open stretch of compacted records up to its end, or to that of the log.

    A stretch often ends far behind the share in which it begins or continues: over a backlog every batch would read the
    rest of it again. So the process remembers where a stretch was found to end, and relies on that only if the record
    that showed the end is still there: one small read per batch. A process without this memory reads on by itself, and
    finds the same.

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


SCHEMA = pa.schema([("key", pa.string()), ("payload", pa.binary())])
"""Columns of the source, as Arrow; must equal its DDL."""

SourceRow = tuple[str, bytes]

# An Arrow batch travels to the JVM as one message: small enough that neither side holds much of it.
_BATCH_BYTES = 8 * 1024 * 1024

# What a task holds of the log before it hands over. Parts of a window merge wherever they were split, so this may
# happen at any record; with a smaller limit a window would come in more parts than necessary.
_HELD_BYTES = 128 * 1024 * 1024

# What a partition holds of observations before it hands them over: a round of thousands of groups, and little compared
# with the records of the log.
_TICKS_BYTES = 8 * 1024 * 1024

# Bytes of values that wait to be decoded together; some thousand records are decoded in any case. One value can have a
# megabyte.
_WAITING_BYTES = 16 * 1024 * 1024

# Records of one batch between two checks of how much is held, and the bytes of their values: the records of a group can
# take 25 times theirs. Less would part what is faster together (`columnar_records`).
_WEIGHED_AT_ONCE = 4_096
_WEIGHED_BYTES = 1024 * 1024


def arrow_batches(rows: Iterator[SourceRow]) -> Iterator[pa.RecordBatch]:
    """Gather rows into Arrow batches of about 8 MB."""
    keys: list[str] = []
    payloads: list[bytes] = []
    size = 0
    for key, payload in rows:
        keys.append(key)
        payloads.append(payload)
        size += len(key) + len(payload)
        if size >= _BATCH_BYTES:
            yield pa.record_batch([keys, payloads], schema=SCHEMA)
            keys, payloads, size = [], [], 0
    if keys:
        yield pa.record_batch([keys, payloads], schema=SCHEMA)


def task_rows(task: SourceTask, settings: SourceSettings, readers: Readers) -> Iterator[SourceRow]:
    """Read a task's shares.

    Raises:
        UnreadableTopicError: The brokers gave nothing for too long.
    """
    yield from task.rows
    if task.log and readers.log is not None:
        yield from _LogTask(task, settings).rows(readers.log)
    if task.events:
        yield from _EventsTask(task, settings).rows(readers.bus)


class _LogTask:
    """The offsets log's part of a task."""

    def __init__(self, task: SourceTask, settings: SourceSettings) -> None:
        self._topic = settings.offsets_topic
        self._log_partitions, self._cluster_id = task.log_partitions, task.cluster_id
        self._watches = settings.filters.watches_group
        self._shares: dict[int, LogShare] = {share.partition: share for share in task.log}
        self._gaps: dict[int, list[PartitionInput]] = {}
        self._compacted = {partition: CompactedStretches() for partition in self._shares}
        self._watches_topic = settings.filters.watches_topic
        self._compactors: dict[int, Compactor] = {}
        self._epochs = {partition: LeaderEpochs() for partition in self._shares}
        self._held = 0
        self._waiting = 0

    def rows(self, reader: RangeReader) -> Iterator[SourceRow]:
        ranges = [OffsetRange(self._topic, share.partition, share.start, share.end) for share in self._shares.values()]
        for where, item in reader.read_runs(ranges):
            if isinstance(item, Gone):
                self._gap(where.partition, item)
            elif isinstance(item, Missing):
                self._compacted[where.partition].missing(item.first, item.last)
            else:
                self._epochs[where.partition].add(*epochs_of(item))
                for piece in pieces(item, where.start, where.end):
                    yield from self._take(where, piece)
        read_on(reader, self._topic, {p: (self._compacted[p], share.end) for p, share in self._shares.items()})
        for partition in self._shares:
            yield from self._compacted_rows(partition)
        yield from self._hand_over()

    def _hand_over(self) -> Iterator[SourceRow]:
        """The rows of what was folded so far; afterwards nothing is held, and every partition starts over."""
        for partition in self._shares:
            unreadable = self._gaps.pop(partition, [])
            compactor = self._compactors.pop(partition, None)
            if compactor is not None:
                for group, inputs in compactor.groups():
                    yield from rows_of(group_key(group), inputs)
                unreadable += compactor.unreadable()
            yield from rows_of(partition_key(self._topic, partition), unreadable)
        self._held = 0

    def _compactor(self, partition: int) -> Compactor:
        found = self._compactors.get(partition)
        if found is None:
            share = self._shares[partition]
            found = self._compactors[partition] = Compactor(
                partition,
                self._log_partitions,
                share.boundaries,
                self._watches,
                self._watches_topic,
                share.windows,
                self._epochs[partition],
                self._cluster_id,
            )
        return found

    def _compacted_rows(self, partition: int) -> Iterator[SourceRow]:
        """Rows for the groups that may have lost records."""
        for group, stretches in self._compacted[partition].groups():
            home = partition_for(group, self._log_partitions, self._cluster_id)
            if self._watches(group) and home == partition:
                yield from rows_of(group_key(group), stretches)

    def _gap(self, partition: int, gone: Gone) -> None:
        share = self._shares[partition]
        if share.known or gone.start > share.start or not gone.before_log:
            gap = LogGap(partition, gone.start, gone.end, gone.reason, self._topic)
            self._gaps.setdefault(partition, []).append(gap)

    def _take(self, where: OffsetRange, piece: FetchedBatch | RecordColumns) -> Iterator[SourceRow]:
        """Process records, and hand over whenever much is held: one batch can have millions of them."""
        if isinstance(piece, RecordColumns):
            compacted = self._compacted[where.partition]
            if compacted.open:
                compacted.add_columns(piece)
            for part in _light_parts(piece):
                compactor = self._compactor(where.partition)
                before = compactor.held
                compactor.add_columns(part)
                yield from self._weighed(compactor.held - before)
            return
        records = walk(piece, where.start, where.end)
        more = True
        while more:
            compactor = self._compactor(where.partition)
            before = compactor.held
            try:
                more = self._add_some(where.partition, compactor, records)
            except CorruptRecordError as error:
                compactor.reject(*unwalkable(piece, error))
                more = False
            yield from self._weighed(compactor.held - before)

    def _add_some(self, partition: int, compactor: Compactor, records: Iterator[Record]) -> bool:
        """Add the next records; False when there are no more."""
        compacted = self._compacted[partition]
        follows = compacted.open
        taken = size = 0
        more = False
        for offset, timestamp, key, value in islice(records, _WEIGHED_AT_ONCE):
            if follows:
                compacted.add(offset, key)
            compactor.add(offset, timestamp, key, value)
            taken += 1
            if value is not None:
                size += len(value)
                if size >= _WEIGHED_BYTES:
                    more = True
                    break
        self._waiting += size
        if self._waiting >= _WAITING_BYTES:
            for waits in self._compactors.values():
                waits.fold()
            self._waiting = 0
        return more or taken == _WEIGHED_AT_ONCE

    def _weighed(self, more: int) -> Iterator[SourceRow]:
        self._held += more
        if self._held >= _HELD_BYTES:
            yield from self._hand_over()


def _light_parts(records: RecordColumns) -> Iterator[RecordColumns]:
    """The records in parts whose values have about `_WEIGHED_BYTES`, or one record."""
    load = np.cumsum(np.maximum(records.value_size, 0)) // _WEIGHED_BYTES
    edges = [0, *(np.flatnonzero(np.diff(load)) + 1).tolist(), len(records)]
    for start, end in pairwise(edges):
        yield records.part(start, end)


class _EventsTask:
    """The events topic's part of a task."""

    def __init__(self, task: SourceTask, settings: SourceSettings) -> None:
        self._topic = settings.events_topic
        self._shares: dict[int, EventsShare] = {share.partition: share for share in task.events}
        self._gaps: dict[int, list[PartitionInput]] = {partition: [] for partition in self._shares}
        filters = settings.filters
        self._readers = {
            share.partition: EventReader(
                self._topic,
                share.partition,
                share.rounds,
                share.start,
                filters.watches_group,
                filters.watches_topic,
            )
            for share in task.events
        }

    def rows(self, reader: TopicReader) -> Iterator[SourceRow]:
        ranges = [
            OffsetRange(self._topic, share.partition, share.read_from, share.end) for share in self._shares.values()
        ]
        for where, item in reader.read(ranges):
            if isinstance(item, Gone):
                self._gap(where.partition, item)
            else:
                yield from self._take(where, item)
        for partition, events in self._readers.items():
            yield from _observation_rows(events)
            unreadable = [*self._gaps[partition], *events.unreadable.inputs()]
            yield from rows_of(partition_key(self._topic, partition), unreadable)

    def _gap(self, partition: int, gone: Gone) -> None:
        share = self._shares[partition]
        since = max(gone.start, share.start)
        if since < gone.end and (share.known or gone.start > share.read_from or not gone.before_log):
            self._gaps[partition].append(LogGap(partition, since, gone.end, gone.reason, self._topic))

    def _take(self, where: OffsetRange, batch: FetchedBatch) -> Iterator[SourceRow]:
        events = self._readers[where.partition]
        try:
            for record in walk(batch, where.start, where.end):
                events.add(record)
                if events.held >= _TICKS_BYTES:
                    yield from _observation_rows(events)
        except CorruptRecordError as error:
            events.reject(*unwalkable(batch, error))


def _observation_rows(events: EventReader) -> Iterator[SourceRow]:
    groups, topics = events.take()
    for topic, of_topic in topics.items():
        yield from rows_of(topic_key(topic), of_topic)
    for group, observations in groups.items():
        yield from rows_of(group_key(group), observations)
