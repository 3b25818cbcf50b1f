"""Folds many offset commits and tombstones into windows: decoded thousands at a time, merged as columns.

A committed partition is permanent; a slot is one between two membership records of its group, and is opened by the
first commit after one. The slots of thousands of keys are found at once.

Merging is `merge_windows` for many rows at once. A single record is a window, too; so records become windows, and
windows larger ones, by the same rule, in whatever pieces they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from streaming.offsets_log.codec.offset_commit import decode_offset_commits
from streaming.offsets_log.codec.record_columns import Ints, RecordColumns
from streaming.offsets_log.codec.record_types import RecordValue
from streaming.offsets_log.codec.wire import printed
from streaming.records import CommitWindow

UNKNOWN = -1
"""Number of a key that is not known."""

DROPPED = 0
"""Instead of a partition's number: all records with this key are dropped."""

# Instead of a slot: none is open; there will never be one.
_CLOSED = -1
_NEVER = -2

_LEAST_PARTITIONS = 1_024

# Limit of remembered keys whose records are dropped, so that a log of ever new ones cannot fill the memory.
_DROPPED_KEPT = 65_536


class CommittedPartition(msgspec.Struct, eq=False):
    """One partition that a group committed for.

    Attributes:
        owner: Number of the group.
        opened: The partitions of the group that have a slot now; shared by all of them.
        name: Topic and partition.
        key: Record key of type 1.
        number: Number of the partition, from 1 up.
    """

    owner: int
    opened: list[CommittedPartition]
    name: tuple[str, int]
    key: bytes
    number: int


class CommitSlots:
    """Partitions that groups committed for, and their slots, of one partition of the offsets log.

    Attributes:
        by_slot: The partition of each slot.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.by_slot: list[CommittedPartition] = []
        self._made: list[CommittedPartition] = []
        # A number by key, a slot by number.
        self._numbers: dict[bytes, int] = {}
        self._dropped = 0
        self._slots: Ints = np.full(_LEAST_PARTITIONS, _CLOSED, np.int64)
        self._slots[DROPPED] = _NEVER

    @property
    def made(self) -> int:
        """Number of partitions created."""
        return len(self._made)

    def committed(self, key: bytes) -> CommittedPartition | None:
        """The partition of a key of type 1, if there is one."""
        number = self._numbers.get(key, DROPPED)
        if number != DROPPED:
            return self._made[number - 1]
        return None

    def make(
        self, owner: int, opened: list[CommittedPartition], name: tuple[str, int], key: bytes
    ) -> CommittedPartition:
        """A new partition; the arguments are its attributes."""
        committed = CommittedPartition(owner, opened, name, key, len(self._made) + 1)
        self._made.append(committed)
        self._numbers[key] = committed.number
        if committed.number >= self._slots.size:
            self._slots = np.concatenate((self._slots, np.full(self._slots.size, _CLOSED, np.int64)))
        return committed

    def close(self, opened: list[CommittedPartition]) -> None:
        """Close the slots of a group, and empty its list."""
        for committed in opened:
            self._slots[committed.number] = _CLOSED
        opened.clear()

    def find(self, records: RecordColumns) -> Ints:
        """Numbers of the partitions of many keys: `DROPPED` for a dropped one, `UNKNOWN` for any other."""
        if not len(records):
            return np.empty(0, np.int64)
        begin = int(records.key_start.min())
        data = records.data[begin : int((records.key_start + records.key_size).max())].tobytes()
        get = self._numbers.get
        places = zip((records.key_start - begin).tolist(), records.key_size.tolist(), strict=True)
        # No key is empty, so a null one, of size -1, is not known.
        return np.fromiter((get(data[at : at + size], UNKNOWN) for at, size in places), np.int64, len(records))

    def drop(self, key: bytes) -> bool:
        """Remember a key whose records are all dropped; False if it is known already, or cannot be remembered."""
        if self._dropped >= _DROPPED_KEPT or key in self._numbers:
            return False
        self._dropped += 1
        self._numbers[key] = DROPPED
        return True

    def assign(self, numbers: Ints) -> Ints:
        """The open slots of partitions by number, opened where there is none; negative for `DROPPED`."""
        slots = self._slots[numbers]
        closed = slots == _CLOSED
        if closed.any():
            for number in dict.fromkeys(numbers[closed].tolist()):
                committed = self._made[number - 1]
                self._slots[number] = len(self.by_slot)
                self.by_slot.append(committed)
                committed.opened.append(committed)
            slots = self._slots[numbers]
        return slots


WindowColumns = dict[str, npt.NDArray[Any]]
"""Windows, one row each: columns by the names of `CommitWindow`'s fields; rows of one slot in log order.

Instead of `topic` and `partition` they have `slot`, the number of group, topic and partition, a new one after each
membership record of the group; and `era`, the boundaries that a window is between: windows of the same slot and era are
parts of one. `step_back` is unsigned, because two int64 offsets can be further apart than an int64 holds; `topic_id`
has 16 bytes a row, zero when not recorded.
"""

# What a merged window takes of its parts: a sum, of the first or the last part with a commit, of the last part.
_SUMMED = ("commits", "tombstones")
_OF_FIRST_COMMIT = ("first_offset", "first_commit_time")
_OF_LAST_COMMIT = ("offset", "leader_epoch", "last_commit_time", "topic_id")
_OF_LAST = ("last_record", "deleted", "unreadable")


def concatenated(parts: Sequence[WindowColumns]) -> WindowColumns:
    """The rows of several parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def merged(rows: WindowColumns) -> WindowColumns:
    """Merge the rows of each slot and era into one, ordered by slot and era.

    The rules are those of `streaming.records.inputs.merge_windows`.

    Args:
        rows: At least one; those of one slot in log order.
    """
    order = _by_slot(rows["slot"])
    slot, era = rows["slot"][order], rows["era"][order]
    begins = np.concatenate(([True], (slot[1:] != slot[:-1]) | (era[1:] != era[:-1])))
    starts = np.flatnonzero(begins)
    ends = np.concatenate((starts[1:], [slot.size])) - 1
    first, last, steps = starts, ends, rows["step_back"][order]
    if not rows["tombstones"].any() and not rows["unreadable"].any():
        # Every row has a commit, as nearly always: half the time.
        before, after = rows["offset"][order[:-1]], rows["first_offset"][order[1:]]
        there = np.flatnonzero((before > after) & ~begins[1:])
        steps[there + 1] = np.maximum(steps[there + 1], before[there].view(np.uint64) - after[there].view(np.uint64))
    else:
        commits = rows["commits"][order]
        # First and last row with a commit; where there is none, any row will do: all are -1.
        places = np.arange(slot.size)
        first = np.minimum(np.minimum.reduceat(np.where(commits > 0, places, slot.size), starts), ends)
        last = np.maximum(np.maximum.reduceat(np.where(commits > 0, places, -1), starts), starts)
        steps = _steps(rows, order, commits, starts)
    found = {"slot": slot[starts], "era": era[starts], "first_record": rows["first_record"][order[starts]]}
    found["step_back"] = np.maximum.reduceat(steps, starts)
    found |= {name: np.add.reduceat(rows[name][order], starts) for name in _SUMMED}
    for names, at in ((_OF_FIRST_COMMIT, first), (_OF_LAST_COMMIT, last), (_OF_LAST, ends)):
        found |= {name: rows[name][order[at]] for name in names}
    return found


def _steps(rows: WindowColumns, order: Ints, commits: Ints, starts: Ints) -> npt.NDArray[np.uint64]:
    """Per row the larger of its own step back and the step to it from the previous row with a commit."""
    steps = rows["step_back"][order]
    with_commit = np.flatnonzero(commits > 0)
    if with_commit.size > 1:
        run = np.zeros(commits.size, np.int64)
        run[starts[1:]] = 1
        run = np.cumsum(run)[with_commit]
        before = rows["offset"][order[with_commit[:-1]]]
        after = rows["first_offset"][order[with_commit[1:]]]
        back = (before > after) & (run[1:] == run[:-1])
        there = with_commit[1:][back]
        # As unsigned numbers the difference of a larger and a smaller int64 is right, however far apart they are.
        steps[there] = np.maximum(steps[there], before[back].view(np.uint64) - after[back].view(np.uint64))
    return steps


def _by_slot(slot: Ints) -> Ints:
    """Rows ordered by slot, those of one slot as they come: ten times as fast as NumPy's stable sort of an int64."""
    # NumPy sorts 16 bits by radix.
    order = np.argsort((slot & 0xFFFF).astype(np.uint16), kind="stable")
    high = slot >> 16
    if high.any():
        return order[np.argsort(high[order].astype(np.uint16), kind="stable")]
    return order


# Rows are merged when there are this many, and this many times those left by the last merge: so memory stays within a
# few times that of the windows themselves (a row has 130 bytes), and merges stay rare.
_LEAST_MERGED = 262_144
_GROWTH = 4

# Also merged when they are in this many parts: the arrays of a part have 2 KB, however few rows they hold.
_MOST_PARTS = 1_024

# Windows built together: their columns then stay in the processor's cache. Ten times more is slower.
_BUILT_AT_ONCE = 4_096


class CommitFold:
    """Folds records into windows: call `add` for each piece of the log, in order, and `windows` at the end."""

    def __init__(
        self, boundaries: Sequence[int], decode_plain: Callable[[int, int, int, bytes], RecordValue | None]
    ) -> None:
        """Start empty.

        Args:
            boundaries: Log positions that separate windows, ascending.
            decode_plain: Called for values that `decode_offset_commits` leaves: slot, log offset, record timestamp,
                value. None: it is unreadable (the callee keeps it elsewhere), and the window says so.
        """
        self._boundaries = np.array(boundaries, np.int64)
        self._decode_plain = decode_plain
        self._parts: list[WindowColumns] = []
        self._rows = 0
        self._merge_at = _LEAST_MERGED

    def __len__(self) -> int:
        """Windows held; those of one slot and era that are not merged yet count separately."""
        return self._rows

    def add(self, slots: Ints, records: RecordColumns) -> None:
        """Fold in the next records.

        Args:
            slots: Slot of each: a number for group, topic and partition, a new one after each membership record.
            records: The records; their keys are not read.
        """
        if not slots.size:
            return
        self._parts.append(merged(self._decoded(slots, records)))
        self._rows += self._parts[-1]["slot"].size
        if self._rows >= self._merge_at or len(self._parts) >= _MOST_PARTS:
            self._parts = [merged(concatenated(self._parts))]
            self._rows = self._parts[0]["slot"].size
            self._merge_at = max(_LEAST_MERGED, _GROWTH * self._rows)

    def windows(
        self, owners: Sequence[int], names: Sequence[tuple[str, int]]
    ) -> Iterator[tuple[int, list[CommitWindow]]]:
        """Yield the windows of each owner, in log order; owners ascending.

        Args:
            owners: Owner of each slot, as a number.
            names: Topic and partition of each slot.
        """
        if not self._parts:
            return
        rows = merged(concatenated(self._parts))
        owner = np.array(owners, np.int64)[rows["slot"]]
        order = np.lexsort((rows["last_record"], owner))
        owner = owner[order]
        edges = [*np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))).tolist(), owner.size]
        built: list[CommitWindow] = []
        first = 0
        for start, end in pairwise(edges):
            if end - first > len(built):
                first = start
                built = _built(rows, order[first : max(end, first + _BUILT_AT_ONCE)], names)
            yield int(owner[start]), built[start - first : end - first]

    def _decoded(self, slots: Ints, records: RecordColumns) -> WindowColumns:
        """One row per record."""
        deleted = records.value_size < 0
        columns = decode_offset_commits(records.data, records.value_start, records.value_size)
        readable = columns.decoded | deleted
        offset, epoch, topic_id, times = columns.offset, columns.leader_epoch, columns.topic_id, records.timestamp
        for row in np.flatnonzero(~readable).tolist():
            value = records.value(row) or b""
            commit = self._decode_plain(int(slots[row]), int(records.offset[row]), int(times[row]), value)
            if commit is not None:
                readable[row] = True
                offset[row] = commit.fields.offset
                epoch[row] = commit.fields.leaderEpoch
                topic_id[row] = np.frombuffer(commit.fields.topicId, np.uint8)
        is_commit = readable & ~deleted
        if not is_commit.all():
            times = times.copy()
            for column in (offset, epoch, times):
                column[~is_commit] = -1
            topic_id[~is_commit] = 0
        return {
            "slot": slots,
            "era": np.searchsorted(self._boundaries, records.offset, side="right"),
            "commits": is_commit.astype(np.int64),
            "tombstones": deleted.astype(np.int64),
            "first_offset": offset,
            "first_commit_time": times,
            "first_record": records.offset,
            "offset": offset,
            "leader_epoch": epoch,
            "last_commit_time": times,
            "last_record": records.offset,
            "deleted": deleted,
            "step_back": np.zeros(slots.size, np.uint64),
            "topic_id": topic_id,
            "unreadable": ~readable,
        }


def _built(rows: WindowColumns, order: Ints, names: Sequence[tuple[str, int]]) -> list[CommitWindow]:
    """Rows as the core's windows, in the given order."""
    topic_ids = rows["topic_id"][order].view("V16")[:, 0].tolist()
    texts = {raw: printed(raw) for raw in set(topic_ids)}
    topic_partitions = [names[slot] for slot in rows["slot"][order].tolist()]
    given = {
        "topic": [topic for topic, _ in topic_partitions],
        "partition": [partition for _, partition in topic_partitions],
        "topic_id": [texts[raw] for raw in topic_ids],
    }
    fields = CommitWindow.__struct_fields__
    columns = (given[name] if name in given else rows[name][order].tolist() for name in fields)
    return list(map(CommitWindow, *columns))
