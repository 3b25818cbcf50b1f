"""Slots of committed partitions, and keys looked up many at a time."""

from __future__ import annotations

import numpy as np
import pytest

from streaming.offsets_log.fold import commit_slots
from streaming.offsets_log.fold.commit_slots import DROPPED, UNKNOWN, CommitSlots
from tests.offsets_log.compacting import columns
from tests.offsets_log.one_by_one import Record


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


def test_keys_are_found_by_all_their_bytes_and_a_null_key_never() -> None:
    slots = CommitSlots()
    made = [slots.make(0, [], ("t", n), b"key" + bytes(n)) for n in range(3)]
    keys = [*(committed.key for committed in made), None, b"ke", b"key\x01"]
    records = columns([Record(number, 0, key, b"v") for number, key in enumerate(keys)])
    assert slots.find(records).tolist() == [*(committed.number for committed in made), UNKNOWN, UNKNOWN, UNKNOWN]


def test_keys_whose_records_are_dropped_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_slots, "_DROPPED_KEPT", 3)
    slots = CommitSlots()
    remembered = [slots.drop(key) for key in (b"a", b"b", b"a", b"c", b"d", b"e")]
    assert remembered == [True, True, False, True, False, False]
    records = columns([Record(number, 0, key, b"v") for number, key in enumerate((b"a", b"b", b"c", b"d", b"e"))])
    assert slots.find(records).tolist() == [DROPPED, DROPPED, DROPPED, UNKNOWN, UNKNOWN]
