"""The slots of the fold for offset commits, by their keys: thousands at a time.

A committed partition is permanent; a slot is one between two membership records of its group, and is opened by the
first commit after one.
"""

from __future__ import annotations

import msgspec
import numpy as np

from streaming.offsets_log.codec.record_columns import Ints, RecordColumns

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
