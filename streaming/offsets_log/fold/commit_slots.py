"""The slot of the fold for an offset commit, by its key: one key at a time, or thousands.

A place is a partition that a group committed for, and is permanent; a slot is a place between two membership records of
its group, and is opened by the first commit after one.
"""

from __future__ import annotations

import numpy as np

from streaming.offsets_log.codec.record_columns import Ints, RecordColumns
from streaming.offsets_log.fold.key_table import UNKNOWN, KeyTable

__all__ = ["DROPPED", "UNKNOWN", "CommitSlots", "Place"]

DROPPED = 0
"""Instead of a place's number: all records with this key are dropped."""

# Instead of a slot: none is open; there will never be one.
_CLOSED = -1
_NEVER = -2

_LEAST_PLACES = 1_024

# Limit of remembered keys whose records are dropped, so that a log of ever new ones cannot fill the memory.
_DROPPED_KEPT = 65_536


class Place:
    """One partition that a group committed for.

    Attributes:
        owner: Number of the group.
        opened: The places of the group that have a slot now; shared by all of them.
        name: Topic and partition.
        key: Record key of type 1.
        number: Number of the place, from 1 up.
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
        # For `find` and `assign`: a number by key, a slot by number. A key enters the table after `find` has missed it
        # once, so the table costs nothing where nobody calls `find`.
        self._table = KeyTable()
        self._met: dict[bytes, int] = {}
        self._dropped = 0
        self._slots: Ints = np.full(_LEAST_PLACES, _CLOSED, np.int64)
        self._slots[DROPPED] = _NEVER

    @property
    def made(self) -> int:
        """Number of places created."""
        return len(self._numbered)

    def place(self, key: bytes) -> Place | None:
        """The place of a key of type 1, if there is one."""
        return self._numbered.get(key)

    def make(self, owner: int, opened: list[Place], name: tuple[str, int], key: bytes) -> Place:
        """A new place; the arguments are its attributes."""
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
        """Numbers of the places of many keys: `DROPPED` for a dropped one, `UNKNOWN` for one not in the table."""
        if self._met:
            self._table.add(self._met)
            self._met = {}
        return self._table.find(records.data, records.key_start, records.key_size)

    def met(self, place: Place) -> int:
        """The number of a place whose key `find` did not know; from now on it does."""
        self._met[place.key] = place.number
        return place.number

    def drop(self, key: bytes) -> None:
        """Remember a key whose records are all dropped."""
        if self._dropped < _DROPPED_KEPT:
            self._dropped += key not in self._met
            self._met[key] = DROPPED

    def assign(self, numbers: Ints) -> Ints:
        """The open slots of places by number, opened where there is none; negative for `DROPPED`."""
        slots = self._slots[numbers]
        closed = slots == _CLOSED
        if closed.any():
            for number in dict.fromkeys(numbers[closed].tolist()):
                place = self._by_number[number]
                if place is not None:
                    self.slot(place)
            slots = self._slots[numbers]
        return slots
