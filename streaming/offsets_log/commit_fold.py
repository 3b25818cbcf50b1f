"""Folds many offset commits and tombstones into windows, vectorised: one column per field, one slot per window.

The rules are those of `CommitWindow` and `merge_windows`; a test folds the same records one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from streaming.groups.inputs import CommitWindow
from streaming.offsets_log.offset_commit import OffsetCommit
from streaming.offsets_log.offset_commits import CommitColumns, decode_offset_commits
from streaming.offsets_log.topic_id import printed

__all__ = ["CommitFold", "canonical"]

# Slots to begin with; doubled when full.
_FIRST_SLOTS = 1_024

_CANONICAL = struct.Struct(">hqiBqBBB16s")

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def canonical(commit: OffsetCommit) -> bytes:
    """A value of the commonest shape (v4) with what the fold takes of a commit, however it was written."""
    return _CANONICAL.pack(4, commit.offset, commit.leader_epoch, 1, 0, 1, 0, 16, commit.topic_id)


class CommitFold:
    """Windows that are being folded.

    `open` a slot per window; append one element per record, in log order, to each of `slots`, `records`,
    `times` and `values` (and the record's index to `tombstones`, with the value b"", where it has no value);
    `fold` every now and then; `windows` at the end. The lists are emptied in place by `fold`.

    Attributes:
        slots: Slot of the record's window.
        records: Log offset.
        times: Record timestamp, ms.
        values: Value bytes.
        tombstones: Indexes of the tombstones.
    """

    def __init__(self, decode_plain: Callable[[int, int, int, bytes], OffsetCommit | None]) -> None:
        """Start empty.

        Args:
            decode_plain: Asked for what `decode_offset_commits` leaves: slot, log offset, record timestamp,
                value. None leaves the record out of the fold (the callee keeps it elsewhere).
        """
        self.slots: list[int] = []
        self.records: list[int] = []
        self.times: list[int] = []
        self.values: list[bytes] = []
        self.tombstones: list[int] = []
        self._decode_plain = decode_plain
        self._names: list[tuple[str, int]] = []
        self._room = _FIRST_SLOTS
        self._commits = np.zeros(self._room, np.int64)
        self._tombstones = np.zeros(self._room, np.int64)
        self._first_offset = np.full(self._room, -1, np.int64)
        self._first_time = np.full(self._room, -1, np.int64)
        self._first_record = np.zeros(self._room, np.int64)
        self._offset = np.full(self._room, -1, np.int64)
        self._leader_epoch = np.full(self._room, -1, np.int32)
        self._last_time = np.full(self._room, -1, np.int64)
        self._last_record = np.zeros(self._room, np.int64)
        self._deleted = np.zeros(self._room, np.bool_)
        # Unsigned: between two int64 offsets can lie more than an int64 holds.
        self._step_back = np.zeros(self._room, np.uint64)
        self._topic_id = np.zeros((self._room, 16), np.uint8)

    def open(self, name: tuple[str, int]) -> int:
        """Allot the slot of a new window of a topic's partition."""
        self._names.append(name)
        return len(self._names) - 1

    def fold(self) -> None:
        """Fold in what was appended, and empty the lists."""
        if not self.slots:
            return
        self._make_room()
        slots = np.array(self.slots, np.int64)
        records = np.array(self.records, np.int64)
        times = np.array(self.times, np.int64)
        tombstones = np.zeros(slots.size, np.bool_)
        tombstones[self.tombstones] = True
        columns = decode_offset_commits(self.values)
        readable = self._readable(columns, tombstones)
        for buffer in (self.slots, self.records, self.times, self.values, self.tombstones):
            buffer.clear()
        order = np.argsort(slots, kind="stable")
        order = order[readable[order]]
        if order.size:
            self._fold_records(slots[order], records[order], tombstones[order])
        order = order[~tombstones[order]]
        if order.size:
            self._fold_commits(slots[order], times[order], columns, order)

    def windows(self) -> list[CommitWindow | None]:
        """The window of each slot; None where no record of it could be read. Folds what is left first."""
        self.fold()
        self._make_room()
        topic_ids = self._topic_id.tobytes()
        printed_ids: dict[bytes, str | None] = {}
        windows: list[CommitWindow | None] = []
        rows = zip(
            self._names,
            self._commits.tolist(),
            self._tombstones.tolist(),
            self._first_offset.tolist(),
            self._first_time.tolist(),
            self._first_record.tolist(),
            self._offset.tolist(),
            self._leader_epoch.tolist(),
            self._last_time.tolist(),
            self._last_record.tolist(),
            self._deleted.tolist(),
            self._step_back.tolist(),
            range(0, len(topic_ids), 16),
            strict=False,  # the columns have room for more slots than there are
        )
        for (topic, partition), commits, gone, first, time, begin, last, epoch, until, end, deleted, step, at in rows:
            raw = topic_ids[at : at + 16]
            if raw not in printed_ids:
                printed_ids[raw] = printed(raw)
            windows.append(
                CommitWindow(
                    topic,
                    partition,
                    commits,
                    gone,
                    first,
                    time,
                    begin,
                    last,
                    epoch,
                    until,
                    end,
                    deleted,
                    step,
                    printed_ids[raw],
                )
                if commits or gone
                else None
            )
        return windows

    def _readable(self, columns: CommitColumns, tombstones: _Bools) -> _Bools:
        """Which rows count: tombstones, and commits that one of the two decoders can read."""
        readable = columns.decoded | tombstones
        for row in np.flatnonzero(~readable).tolist():
            value = self.values[row]
            commit = self._decode_plain(self.slots[row], self.records[row], self.times[row], value)
            if commit is not None:
                readable[row] = True
                columns.offset[row] = commit.offset
                columns.leader_epoch[row] = commit.leader_epoch
                columns.topic_id[row] = np.frombuffer(commit.topic_id, np.uint8)
        return readable

    def _fold_records(self, slots: _Ints, records: _Ints, tombstones: _Bools) -> None:
        starts, ends, touched = _runs(slots)
        fresh = (self._commits[touched] + self._tombstones[touched]) == 0
        self._first_record[touched[fresh]] = records[starts[fresh]]
        self._last_record[touched] = records[ends]
        self._deleted[touched] = tombstones[ends]
        self._tombstones[touched] += np.add.reduceat(tombstones, starts, dtype=np.int64)

    def _fold_commits(self, slots: _Ints, times: _Ints, columns: CommitColumns, order: _Ints) -> None:
        starts, ends, touched = _runs(slots)
        offsets = columns.offset[order]
        fresh = self._commits[touched] == 0
        self._first_offset[touched[fresh]] = offsets[starts[fresh]]
        self._first_time[touched[fresh]] = times[starts[fresh]]
        before = np.empty_like(offsets)
        before[1:] = offsets[:-1]
        before[starts] = np.where(fresh, offsets[starts], self._offset[touched])
        steps = np.where(before > offsets, before.view(np.uint64) - offsets.view(np.uint64), np.uint64(0))
        self._step_back[touched] = np.maximum(self._step_back[touched], np.maximum.reduceat(steps, starts))
        self._commits[touched] += ends - starts + 1
        self._offset[touched] = offsets[ends]
        self._leader_epoch[touched] = columns.leader_epoch[order[ends]]
        self._topic_id[touched] = columns.topic_id[order[ends]]
        self._last_time[touched] = times[ends]

    def _make_room(self) -> None:
        while self._room < len(self._names):
            self._room *= 2
        if self._commits.shape[0] < self._room:
            for name, column in list(vars(self).items()):
                if isinstance(column, np.ndarray):
                    larger = np.zeros((self._room, *column.shape[1:]), column.dtype)
                    larger[: column.shape[0]] = column
                    setattr(self, name, larger)


def _runs(slots: _Ints) -> tuple[_Ints, _Ints, _Ints]:
    """First and last index of each run of equal slots in a sorted column, and the slot of each run."""
    starts = np.flatnonzero(np.concatenate(([True], slots[1:] != slots[:-1])))
    ends = np.concatenate((starts[1:], [slots.size])) - 1
    return starts, ends, slots[starts]
