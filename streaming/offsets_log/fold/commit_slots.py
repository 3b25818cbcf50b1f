"""The slot of the fold for an offset commit, by its key: one key at a time, or thousands.

A committed partition is permanent; a slot is one between two membership records of its group, and is opened by the
first commit after one.

Thousands of keys at once are looked up in an open-addressing table in NumPy, one for each width of keys (padded with
zeros). A key is found by a hash of 64 bits, and then all its bytes are compared: keys that collide are never mistaken
for each other. The second of them is simply not found, and the caller must look it up in another way. pyarrow's
`dictionary_encode` and a dict of the distinct keys need no table of ours, and 50 to 80 ns a record more: a quarter of
decoding and folding a commit (docs/performance.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from streaming.offsets_log.codec.record_columns import PADDING, Bytes, Ints, RecordColumns, rows_at

UNKNOWN = -1
"""Number of a key that is not in the table."""

# Keys are held in rows of these widths in bytes: few of them, so that a fetch has one or two (a key is 12 bytes and the
# names of a group and a topic); longer keys are never held. No more than `PADDING`.
_WIDTHS = (32, 48, 64, 96, 128, 192, 256)

_WORD = 8

# Every second entry is free, so most keys are where their hash points. A key that would be further off than this is not
# held: nobody can slow the table down with names that collide.
_FARTHEST = 16
_LEAST_ROWS = 512

Words = npt.NDArray[np.uint64]


class KeyTable:
    """Numbers by keys. `add` keys, `find` them; none is ever removed."""

    def __init__(self) -> None:
        """Start empty; the table of a width is created with its first key."""
        self._tables: dict[int, _OfWidth] = {}

    def add(self, numbers: Mapping[bytes, int]) -> None:
        """Add new keys, except those that are too long or too far off.

        Args:
            numbers: Numbers from 0 on, by key.
        """
        by_width: dict[int, list[bytes]] = {}
        for key in numbers:
            by_width.setdefault(bisect_left(_WIDTHS, len(key)), []).append(key)
        for width, keys in by_width.items():
            if width < len(_WIDTHS):
                if width not in self._tables:
                    self._tables[width] = _OfWidth(_WIDTHS[width])
                self._tables[width].add(keys, [numbers[key] for key in keys])

    def find(self, data: Bytes, starts: Ints, sizes: Ints) -> Ints:
        """The number of each key; `UNKNOWN` where it is not held, or is null.

        Args:
            data: Holds the keys, and `PADDING` further bytes behind them.
            starts: Where each key begins.
            sizes: Its bytes; -1 for null.
        """
        if not sizes.size:
            return np.empty(0, np.int64)
        first, last = bisect_left(_WIDTHS, int(sizes.min())), bisect_left(_WIDTHS, int(sizes.max()))
        if first == last and sizes.min() >= 0:
            return self._find(first, data, starts, sizes)
        width = np.where(sizes < 0, len(_WIDTHS), np.searchsorted(_WIDTHS, sizes, side="left"))
        found = np.full(starts.size, UNKNOWN, np.int64)
        for which in np.unique(width).tolist():
            rows = np.flatnonzero(width == which)
            found[rows] = self._find(which, data, starts[rows], sizes[rows])
        return found

    def _find(self, width: int, data: Bytes, starts: Ints, sizes: Ints) -> Ints:
        table = self._tables.get(width)
        return np.full(starts.size, UNKNOWN, np.int64) if table is None else table.find(data, starts, sizes)


@cache
def _masks(width: int) -> Words:
    """Masks of the bytes of a row that belong to the key, by its size."""
    kept = np.arange(width)[None, :] < np.arange(width + 1)[:, None]
    masks: Words = (kept * np.uint8(0xFF)).view(np.uint64)
    return masks


@cache
def _factors(width: int) -> Words:
    """Factors of a row's words; the last one is for its size."""
    # A fixed seed, so that nothing depends on chance; odd, so that no bit of a word is lost.
    factors: Words = np.random.default_rng(width).integers(0, 2**64, width // _WORD + 1, np.uint64) | np.uint64(1)
    return factors


class _OfWidth:
    """Keys up to one width. One row per key; an entry of the table is a row, or -1."""

    def __init__(self, width: int) -> None:
        self._width = width
        columns = width // _WORD
        self._masks, self._factors = _masks(width), _factors(width)
        self._rows = 0
        self._words: Words = np.empty((_LEAST_ROWS, columns), np.uint64)
        self._hashes: Words = np.empty(_LEAST_ROWS, np.uint64)
        self._sizes: Ints = np.empty(_LEAST_ROWS, np.int64)
        self._numbers: Ints = np.empty(_LEAST_ROWS, np.int64)
        self._entries: Ints = np.full(2 * _LEAST_ROWS, -1, np.int64)

    def find(self, data: Bytes, starts: Ints, sizes: Ints) -> Ints:
        words = self._read(data, starts, sizes)
        hashes = self._hash(words, sizes)
        at = self._home(hashes)
        row = self._entries[at]
        missed = np.flatnonzero((row >= 0) & (self._hashes[row] != hashes))
        for _ in range(_FARTHEST):
            if not missed.size:
                break
            at[missed] = (at[missed] + 1) & (self._entries.size - 1)
            row[missed] = self._entries[at[missed]]
            there = missed[row[missed] >= 0]
            missed = there[self._hashes[row[there]] != hashes[there]]
        # (An entry without a key is -1, which reads the last row.)
        packed = self._words.view(f"V{self._width}")[:, 0]
        held = packed[row].view(np.uint64).reshape(words.shape)
        different = words[:, 0] ^ held[:, 0]
        for column in range(1, words.shape[1]):
            different |= words[:, column] ^ held[:, column]
        same = (row >= 0) & (different == 0) & (self._sizes[row] == sizes)
        return np.where(same, self._numbers[row], UNKNOWN)

    def add(self, keys: list[bytes], numbers: list[int]) -> None:
        if self._rows + len(keys) > self._numbers.size:
            self._grow(self._rows + len(keys))
        sizes = np.fromiter(map(len, keys), np.int64, len(keys))
        ends = np.cumsum(sizes)
        data = np.frombuffer(b"".join([*keys, bytes(PADDING)]), np.uint8)
        words = self._read(data, ends - sizes, sizes)
        hashes = self._hash(words, sizes)
        # Keys with the same hash: the first one is held.
        kept = np.sort(np.unique(hashes, return_index=True)[1])
        rows = slice(self._rows, self._rows + kept.size)
        self._words[rows], self._hashes[rows], self._sizes[rows] = words[kept], hashes[kept], sizes[kept]
        self._numbers[rows] = np.array(numbers, np.int64)[kept]
        self._rows += kept.size
        self._enter(np.arange(rows.start, rows.stop))

    def _enter(self, rows: Ints) -> None:
        """Point entries to rows; a row without a free entry, or whose hash is already there, gets none."""
        at = self._home(self._hashes[rows])
        for _ in range(_FARTHEST):
            there = self._entries[at]
            free = there < 0
            # Several may want the same entry: the first of them gets it, the others move on.
            self._entries[at[free][::-1]] = rows[free][::-1]
            left = self._entries[at] != rows
            left &= self._hashes[self._entries[at]] != self._hashes[rows]
            at, rows = (at[left] + 1) & (self._entries.size - 1), rows[left]
            if not rows.size:
                return

    def _grow(self, least: int) -> None:
        size = self._numbers.size
        while size < least:
            size *= 2
        for name in ("_words", "_hashes", "_sizes", "_numbers"):
            old = getattr(self, name)
            new = np.empty((size, *old.shape[1:]), old.dtype)
            new[: self._rows] = old[: self._rows]
            setattr(self, name, new)
        self._entries = np.full(2 * size, -1, np.int64)
        # A key without a free entry is now lost to the table, which is allowed.
        self._enter(np.arange(self._rows))

    def _read(self, data: Bytes, starts: Ints, sizes: Ints) -> Words:
        """The keys' bytes, padded with zeros."""
        words: Words = rows_at(data, starts, self._width).view(np.uint64)
        words &= self._masks[sizes]
        return words

    def _hash(self, words: Words, sizes: Ints) -> Words:
        hashes: Words = sizes.astype(np.uint64) * self._factors[-1]
        for column in range(words.shape[1]):
            hashes += words[:, column] * self._factors[column]
        # The last byte of a word, in which partitions differ, has only reached the first bits so far.
        hashes ^= hashes >> np.uint64(32)
        hashes *= self._factors[0]
        return hashes

    def _home(self, hashes: Words) -> Ints:
        """The entry that a hash points to."""
        bits = int(self._entries.size).bit_length() - 1
        return (hashes >> np.uint64(64 - bits)).astype(np.int64)


DROPPED = 0
"""Instead of a partition's number: all records with this key are dropped."""

# Instead of a slot: none is open; there will never be one.
_CLOSED = -1
_NEVER = -2

_LEAST_PARTITIONS = 1_024

# Limit of remembered keys whose records are dropped, so that a log of ever new ones cannot fill the memory.
_DROPPED_KEPT = 65_536


class CommittedPartition:
    """One partition that a group committed for.

    Attributes:
        owner: Number of the group.
        opened: The partitions of the group that have a slot now; shared by all of them.
        name: Topic and partition.
        key: Record key of type 1.
        number: Number of the partition, from 1 up.
        met: Its key was given to the table, which may not hold it.
    """

    __slots__ = ("key", "met", "name", "number", "opened", "owner")

    def __init__(
        self, owner: int, opened: list[CommittedPartition], name: tuple[str, int], key: bytes, number: int
    ) -> None:
        self.owner = owner
        self.opened = opened
        self.name = name
        self.key = key
        self.number = number
        self.met = False


class CommitSlots:
    """Partitions that groups committed for, and their slots, of one partition of the offsets log.

    Attributes:
        by_key: Open slots by record key.
        by_slot: The partition of each slot.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.by_key: dict[bytes | None, int] = {}
        self.by_slot: list[CommittedPartition] = []
        self._numbered: dict[bytes, CommittedPartition] = {}
        self._by_number: list[CommittedPartition | None] = [None]
        # For `find` and `assign`: a number by key, a slot by number. A key enters the table after `find` has missed it
        # once, so the table costs nothing where nobody calls `find`.
        self._table = KeyTable()
        self._met: dict[bytes, int] = {}
        self._dropped = 0
        self._slots: Ints = np.full(_LEAST_PARTITIONS, _CLOSED, np.int64)
        self._slots[DROPPED] = _NEVER

    @property
    def made(self) -> int:
        """Number of partitions created."""
        return len(self._numbered)

    def committed(self, key: bytes) -> CommittedPartition | None:
        """The partition of a key of type 1, if there is one."""
        return self._numbered.get(key)

    def make(
        self, owner: int, opened: list[CommittedPartition], name: tuple[str, int], key: bytes
    ) -> CommittedPartition:
        """A new partition; the arguments are its attributes."""
        committed = self._numbered[key] = CommittedPartition(owner, opened, name, key, len(self._by_number))
        self._by_number.append(committed)
        if committed.number >= self._slots.size:
            self._slots = np.concatenate((self._slots, np.full(self._slots.size, _CLOSED, np.int64)))
        return committed

    def slot(self, committed: CommittedPartition) -> int:
        """The open slot of a partition; opened if there is none."""
        slot = self.by_key.get(committed.key)
        if slot is None:
            slot = self.by_key[committed.key] = len(self.by_slot)
            self._slots[committed.number] = slot
            self.by_slot.append(committed)
            committed.opened.append(committed)
        return slot

    def close(self, opened: list[CommittedPartition]) -> None:
        """Close the slots of a group, and empty its list."""
        for committed in opened:
            del self.by_key[committed.key]
            self._slots[committed.number] = _CLOSED
        opened.clear()

    def find(self, records: RecordColumns) -> Ints:
        """Numbers of the partitions of many keys: `DROPPED` for a dropped one, `UNKNOWN` for one not in the table."""
        if self._met:
            self._table.add(self._met)
            self._met = {}
        return self._table.find(records.data, records.key_start, records.key_size)

    def met(self, committed: CommittedPartition) -> int:
        """The number of a partition whose key `find` did not know; from now on it does, if the table can hold it."""
        # Only once: the table would keep a row each time for a key that it cannot hold, and anyone can make such keys.
        if not committed.met:
            committed.met = True
            self._met[committed.key] = committed.number
        return committed.number

    def drop(self, key: bytes) -> bool:
        """Remember a key whose records are all dropped; False if it is known already, or cannot be remembered."""
        if self._dropped >= _DROPPED_KEPT or len(key) > _WIDTHS[-1] or key in self._met:
            return False
        self._dropped += 1
        self._met[key] = DROPPED
        return True

    def assign(self, numbers: Ints) -> Ints:
        """The open slots of partitions by number, opened where there is none; negative for `DROPPED`."""
        slots = self._slots[numbers]
        closed = slots == _CLOSED
        if closed.any():
            for number in dict.fromkeys(numbers[closed].tolist()):
                committed = self._by_number[number]
                if committed is not None:
                    self.slot(committed)
            slots = self._slots[numbers]
        return slots
