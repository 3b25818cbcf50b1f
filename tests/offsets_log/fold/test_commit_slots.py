"""Slots of committed partitions."""

from __future__ import annotations

import numpy as np

from streaming.offsets_log.fold.commit_slots import CommitSlots


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
