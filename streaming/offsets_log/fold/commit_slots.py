"""Which slot of the fold an offset commit belongs to, by its key: one key at a time, or thousands.

A place is a partition that a group committed for, and stays; a slot is a place between two membership records of its
group, and is opened by the first commit after one.
"""

from __future__ import annotations

import numpy as np

from streaming.offsets_log.codec.record_columns import Ints, RecordColumns
from streaming.offsets_log.fold.key_table import UNKNOWN, KeyTable

__all__ = ["DROPPED", "UNKNOWN", "CommitSlots", "Place"]

DROPPED = 0
"""In the place of a place's number: all records with this key are dropped."""

# In the place of a slot: none is open; there will never be one.
_CLOSED = -1
_NEVER = -2

_LEAST_PLACES = 1_024

# Keys whose records are dropped and that are remembered, so that a log of ever new ones cannot fill the memory.
_DROPPED_KEPT = 65_536


class Place:
    """One partition that a group committed for.

    Attributes:
        owner: Stands for the group.
        opened: The places of the group that have a slot now; shared by all of them.
        name: Topic and partition.
        key: Record key of type 1.
        number: Stands for the place; from 1 on.
    """

    __slots__ = ("key", "name", "number", "opened", "owner")

    def __init__(self, owner: int, opened: list[Place], name: tuple[str, int], key: bytes, number: int) -> None:
        self.owner = owner
        self.opened = opened
        self.name = name
        self.key = key
        self.number = number


class CommitSlots:
    """Places and slots of one partition of the offsets log.

    Attributes:
        by_key: Open slots by record key.
        places: The place of each slot.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.by_key: dict[bytes | None, int] = {}
        self.places: list[Place] = []
        self._numbered: dict[bytes, Place] = {}
        self._by_number: list[Place | None] = [None]
        # What `find` and `assign` ask: a number by key, a slot by number. Keys come into the table when `find` missed
        # them once, so that it costs nothing where nobody asks.
        self._table = KeyTable()
        self._met: dict[bytes, int] = {}
        self._dropped = 0
        self._slots: Ints = np.full(_LEAST_PLACES, _CLOSED, np.int64)
        self._slots[DROPPED] = _NEVER

    @property
    def made(self) -> int:
        """Places made."""
        return len(self._numbered)

    def place(self, key: bytes) -> Place | None:
        """The place of a key of type 1, if it was made before."""
        return self._numbered.get(key)

    def make(self, owner: int, opened: list[Place], name: tuple[str, int], key: bytes) -> Place:
        """A new place; arguments as the attributes of one."""
        place = self._numbered[key] = Place(owner, opened, name, key, len(self._by_number))
        self._by_number.append(place)
        if place.number >= self._slots.size:
            self._slots = np.concatenate((self._slots, np.full(self._slots.size, _CLOSED, np.int64)))
        return place

    def slot(self, place: Place) -> int:
        """The open slot of a place; opened if there is none."""
        slot = self.by_key.get(place.key)
        if slot is None:
            slot = self.by_key[place.key] = len(self.places)
            self._slots[place.number] = slot
            self.places.append(place)
            place.opened.append(place)
        return slot

    def close(self, opened: list[Place]) -> None:
        """Close the slots of a group, and empty its list."""
        for place in opened:
            del self.by_key[place.key]
            self._slots[place.number] = _CLOSED
        opened.clear()

    def find(self, records: RecordColumns) -> Ints:
        """Numbers of the places of many keys: `DROPPED` for one dropped before, `UNKNOWN` for all the table has not."""
        if self._met:
            self._table.add(self._met)
            self._met = {}
        return self._table.find(records.data, records.key_start, records.key_size)

    def met(self, place: Place) -> int:
        """The number of a place whose key `find` did not know; it will."""
        self._met[place.key] = place.number
        return place.number

    def drop(self, key: bytes) -> None:
        """Remember a key all whose records are dropped."""
        if self._dropped < _DROPPED_KEPT:
            self._dropped += key not in self._met
            self._met[key] = DROPPED

    def assign(self, numbers: Ints) -> Ints:
        """The open slots of places by number, opened where there is none; below 0 for `DROPPED`."""
        slots = self._slots[numbers]
        closed = slots == _CLOSED
        if closed.any():
            for number in dict.fromkeys(numbers[closed].tolist()):
                place = self._by_number[number]
                if place is not None:
                    self.slot(place)
            slots = self._slots[numbers]
        return slots
