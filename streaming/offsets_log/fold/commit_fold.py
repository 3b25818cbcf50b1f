"""Folds many offset commits and tombstones into windows: decoded thousands at a time, merged as columns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from streaming.offsets_log.codec.offset_commit import OffsetCommit, decode_offset_commits, joined
from streaming.offsets_log.codec.record_columns import RecordColumns
from streaming.offsets_log.codec.topic_id import printed
from streaming.offsets_log.fold.window_rows import Ints, WindowRows, concatenated, merged
from streaming.records import CommitWindow

__all__ = ["CommitFold", "canonical"]

# Rows are merged when there are this many, and this many times those left by the last merge: so memory stays within a
# few times that of the windows themselves (a row has 130 bytes), and merges stay rare.
_LEAST_MERGED = 262_144
_GROWTH = 4

# Windows built together: their columns then stay in the processor's cache. Ten times more is slower.
_BUILT_AT_ONCE = 4_096

_CANONICAL = struct.Struct(">hqiBqBBB16s")


def canonical(commit: OffsetCommit) -> bytes:
    """A value of the most common shape (v4) with the fields that the fold needs, in whatever shape it was written."""
    return _CANONICAL.pack(4, commit.offset, commit.leader_epoch, 1, 0, 1, 0, 16, commit.topic_id)


class CommitFold:
    """Windows in the making.

    Append one element per record, in log order, to each of `slots`, `records`, `times` and `values` (and the record's
    index to `tombstones`, with the value b"", where it has no value); call `fold` every now and then, and `windows` at
    the end. `fold` empties the lists in place.

    Attributes:
        slots: Slot of the record: a number for group, topic and partition, a new one after each membership record.
        records: Log offset.
        times: Record timestamp, ms.
        values: Value bytes.
        tombstones: Indexes of the tombstones.
    """

    def __init__(
        self, boundaries: Sequence[int], decode_plain: Callable[[int, int, int, bytes], OffsetCommit | None]
    ) -> None:
        """Start empty.

        Args:
            boundaries: Log positions that separate windows, ascending.
            decode_plain: Called for values that `decode_offset_commits` leaves: slot, log offset, record timestamp,
                value. None leaves the record out of the fold (the callee keeps it elsewhere).
        """
        self.slots: list[int] = []
        self.records: list[int] = []
        self.times: list[int] = []
        self.values: list[bytes] = []
        self.tombstones: list[int] = []
        self._boundaries = np.array(boundaries, np.int64)
        self._decode_plain = decode_plain
        self._parts: list[WindowRows] = []
        self._rows = 0
        self._merge_at = _LEAST_MERGED

    def __len__(self) -> int:
        """Windows held; those of one slot and era that are not merged yet count separately."""
        return self._rows

    def fold(self) -> None:
        """Fold in the appended records, and empty the lists."""
        if not self.slots:
            return
        slots, records, times = (np.array(column, np.int64) for column in (self.slots, self.records, self.times))
        data, starts, sizes = joined(self.values)
        sizes[self.tombstones] = -1
        for buffer in (self.slots, self.records, self.times, self.values, self.tombstones):
            buffer.clear()
        self._add(slots, RecordColumns(data, records, times, starts, sizes, starts, sizes))

    def fold_columns(self, slots: Ints, records: RecordColumns) -> None:
        """Fold in records that come as columns; records appended before must be folded first.

        Args:
            slots: Slot of each record.
            records: The records; their keys are not read.
        """
        if slots.size:
            self._add(slots, records)

    def _add(self, slots: Ints, records: RecordColumns) -> None:
        rows = self._decoded(slots, records)
        if len(rows):
            self._parts.append(merged(rows))
            self._rows += len(self._parts[-1])
        if self._rows >= self._merge_at:
            self._parts = [merged(concatenated(self._parts))]
            self._rows = len(self._parts[0])
            self._merge_at = max(_LEAST_MERGED, _GROWTH * self._rows)

    def windows(
        self, owners: Sequence[int], names: Sequence[tuple[str, int]]
    ) -> Iterator[tuple[int, list[CommitWindow]]]:
        """Fold the rest, and yield the windows of each owner, in log order; owners ascending.

        Args:
            owners: Owner of each slot, as a number.
            names: Topic and partition of each slot.
        """
        self.fold()
        if not self._parts:
            return
        rows = merged(concatenated(self._parts))
        owner = np.array(owners, np.int64)[rows.slot]
        order = np.lexsort((rows.last_record, owner))
        owner = owner[order]
        edges = [*np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))).tolist(), owner.size]
        built: list[CommitWindow] = []
        first = 0
        for start, end in pairwise(edges):
            if end - first > len(built):
                first = start
                built = _built(rows, order[first : max(end, first + _BUILT_AT_ONCE)], names)
            yield int(owner[start]), built[start - first : end - first]

    def _decoded(self, slots: Ints, records: RecordColumns) -> WindowRows:
        """One row per record that can be decoded."""
        deleted = records.value_size < 0
        columns = decode_offset_commits(records.data, records.value_start, records.value_size)
        readable = columns.decoded | deleted
        offset, epoch, topic_id, times = columns.offset, columns.leader_epoch, columns.topic_id, records.timestamp
        for row in np.flatnonzero(~readable).tolist():
            value = records.value(row) or b""
            commit = self._decode_plain(int(slots[row]), int(records.offset[row]), int(times[row]), value)
            if commit is not None:
                readable[row] = True
                offset[row] = commit.offset
                epoch[row] = commit.leader_epoch
                topic_id[row] = np.frombuffer(commit.topic_id, np.uint8)
        if deleted.any():
            times = times.copy()
            for column in (offset, epoch, times):
                column[deleted] = -1
            topic_id[deleted] = 0
        rows = WindowRows(
            slot=slots,
            era=np.searchsorted(self._boundaries, records.offset, side="right"),
            commits=(~deleted).astype(np.int64),
            tombstones=deleted.astype(np.int64),
            first_offset=offset,
            first_commit_time=times,
            first_record=records.offset,
            offset=offset,
            leader_epoch=epoch,
            last_commit_time=times,
            last_record=records.offset,
            deleted=deleted,
            step_back=np.zeros(slots.size, np.uint64),
            topic_id=topic_id,
        )
        return rows if readable.all() else rows.where(readable)


def _built(rows: WindowRows, order: Ints, names: Sequence[tuple[str, int]]) -> list[CommitWindow]:
    """Rows as the core's windows, in the given order."""
    topic_ids = rows.topic_id[order].view("V16")[:, 0].tolist()
    texts = {raw: printed(raw) for raw in set(topic_ids)}
    topic_partitions = [names[slot] for slot in rows.slot[order].tolist()]
    given = {
        "topic": [topic for topic, _ in topic_partitions],
        "partition": [partition for _, partition in topic_partitions],
        "topic_id": [texts[raw] for raw in topic_ids],
    }
    fields = CommitWindow.__struct_fields__
    columns = (given[name] if name in given else getattr(rows, name)[order].tolist() for name in fields)
    return list(map(CommitWindow, *columns))
