"""Slots of committed partitions, and keys looked up many at a time: the right number, whatever bytes and collisions."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from streaming.offsets_log.fold import commit_slots
from streaming.offsets_log.fold.commit_slots import DROPPED, UNKNOWN, CommitSlots, KeyTable
from tests.offsets_log.compacting import columns
from tests.offsets_log.one_by_one import Record


def found(table: KeyTable, keys: list[bytes | None]) -> list[int]:
    records = columns([Record(number, 0, key, b"v") for number, key in enumerate(keys)])
    return table.find(records.data, records.key_start, records.key_size).tolist()


def some_keys(random: Random, count: int) -> list[bytes]:
    sizes = [0, 1, 7, 8, 31, 32, 33, 48, 49, 64, 96, 128, 192, 255, 256]
    keys = {random.randbytes(random.choice(sizes)) for _ in range(count)}
    # Keys that differ only in zeros at the end, or in one bit.
    keys |= {key[:-1] + bytes([key[-1] ^ 0x80]) for key in list(keys)[:500] if key}
    keys |= {key + bytes(number) for key in list(keys)[:100] for number in (1, 2, 9) if len(key) + number <= 256}
    return sorted(keys)


def test_every_key_that_was_added_is_found_and_no_other() -> None:
    random = Random(1)
    keys = some_keys(random, 6_000)
    random.shuffle(keys)
    table = KeyTable()
    numbers: dict[bytes, int] = {}
    for first in range(0, len(keys), 700):
        assert set(found(table, list(keys[first:]))) == {UNKNOWN}
        more = {key: first + number for number, key in enumerate(keys[first : first + 700])}
        table.add(more)
        numbers |= more
        asked = random.sample(keys, 900)
        told = dict(zip(asked, found(table, list(asked)), strict=True))
        assert {key: number for key, number in told.items() if number != UNKNOWN and numbers.get(key) != number} == {}
        # Few are so far from their home slot that they are left out.
        missed = [key for key, number in told.items() if number == UNKNOWN and key in numbers]
        assert len(missed) < 10


def test_null_keys_and_long_ones_are_not_held() -> None:
    table = KeyTable()
    table.add({b"k" * 257: 1, b"k" * 256: 2, b"": 3})
    assert found(table, [b"k" * 257, b"k" * 256, None, b"", b"k" * 255]) == [UNKNOWN, 2, UNKNOWN, 3, UNKNOWN]
    assert found(table, []) == []
    assert found(table, [None, None]) == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("kept", [0, 0xF, 0xF << 60])
def test_keys_that_collide_are_never_taken_for_each_other(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = commit_slots._OfWidth._hash

    def poor(self: Any, words: Any, sizes: Any) -> Any:
        return hashes(self, words, sizes) & np.uint64(kept)

    monkeypatch.setattr(commit_slots._OfWidth, "_hash", poor)
    keys = some_keys(Random(2), 300)
    table = KeyTable()
    numbers = {key: number for number, key in enumerate(keys)}
    for _ in range(2):
        table.add(numbers)
        told = dict(zip(keys, found(table, list(keys)), strict=True))
        assert {key: n for key, n in told.items() if n not in {UNKNOWN, numbers[key]}} == {}
        assert any(number != UNKNOWN for number in told.values())


def test_thousands_of_partitions_have_a_slot_each_until_it_is_closed() -> None:
    slots, opened = CommitSlots(), []
    made = [slots.make(0, opened, ("t", n), b"%d" % n) for n in range(5_000)]
    numbers = np.array([committed.number for committed in made])
    assert slots.assign(numbers).tolist() == list(range(5_000))
    assert slots.made == 5_000
    slots.close(opened)
    assert opened == []
    # (The next slots come after those that were open before.)
    assert slots.assign(numbers[[4_999, 0, 4_999]]).tolist() == [5_000, 5_001, 5_000]


def test_a_partition_has_its_slot_as_soon_as_it_is_made_however_many_there_are() -> None:
    slots, opened = CommitSlots(), []
    assert [slots.slot(slots.make(0, opened, ("t", n), b"%d" % n)) for n in range(5_000)] == list(range(5_000))


def test_a_key_that_the_table_cannot_hold_is_given_to_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # All keys have one hash, so the table holds the first.
    monkeypatch.setattr(commit_slots._OfWidth, "_hash", lambda _self, _words, sizes: np.zeros(sizes.size, np.uint64))
    slots, opened = CommitSlots(), []
    made = [slots.make(0, opened, ("t", n), b"key %d" % n) for n in range(5)]
    records = columns([Record(committed.number, 0, committed.key, b"v") for committed in made])
    for _ in range(10):
        numbers = slots.find(records)
        for committed, number in zip(made, numbers.tolist(), strict=True):
            assert number in {UNKNOWN, committed.number}
            if number == UNKNOWN:
                assert slots.met(committed) == committed.number
    (table,) = slots._table._tables.values()
    assert table._rows <= 5
    assert int(np.count_nonzero(slots.find(records) != UNKNOWN)) == 1


def test_keys_whose_records_are_dropped_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_slots, "_DROPPED_KEPT", 3)
    slots = CommitSlots()
    # (One of 257 bytes is longer than the table holds.)
    remembered = [slots.drop(key) for key in (b"a", b"b", b"a", bytes(257), b"c", b"d", b"e")]
    assert remembered == [True, True, False, False, True, False, False]
    records = columns([Record(number, 0, key, b"v") for number, key in enumerate((b"a", b"b", b"c", b"d", b"e"))])
    assert slots.find(records).tolist() == [DROPPED, DROPPED, DROPPED, UNKNOWN, UNKNOWN]
