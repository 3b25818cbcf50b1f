"""Leader epochs of a log partition by offset, and on the records that decide."""

from __future__ import annotations

import numpy as np
import pytest

from streaming.offsets_log import CompactedStretches, Compactor, LeaderEpochs, OffsetKey, StretchEnd
from streaming.offsets_log.codec.record_types import offset_commit_key
from streaming.records import Compacted, GroupEpoch, MembershipRecord, TargetEpoch
from tests.offsets_log.compacting import columns
from tests.offsets_log.one_by_one import Record
from tests.offsets_log.written import group_epoch, group_key, group_value, other_key


def known(*batches: tuple[int, int]) -> LeaderEpochs:
    """Batches as (first offset, epoch), added one by one."""
    epochs = LeaderEpochs()
    for first, epoch in batches:
        epochs.add(np.array([first]), np.array([epoch]))
    return epochs


def test_an_offset_has_the_epoch_of_its_batch() -> None:
    epochs = known((10, 3), (20, 3), (30, 5), (40, 6))
    assert [epochs.at(offset) for offset in (10, 19, 29, 30, 39, 40, 999)] == [3, 3, 3, 5, 5, 6, 6]


def test_before_the_first_batch_nothing_is_known() -> None:
    assert LeaderEpochs().at(5) == -1
    assert known((10, 3)).at(9) == -1


def test_batches_may_come_together_or_one_by_one_or_again() -> None:
    together = LeaderEpochs()
    together.add(np.array([10, 20, 30, 40]), np.array([3, 3, 5, 6]))
    together.add(np.array([], np.int64), np.array([], np.int64))
    together.add(np.array([30, 40, 50]), np.array([5, 6, 6]))
    alone = known((10, 3), (20, 3), (30, 5), (40, 6), (50, 6))
    assert [together.at(offset) for offset in range(60)] == [alone.at(offset) for offset in range(60)]


def test_the_records_that_decide_have_the_epoch_of_their_batch() -> None:
    codec = Compactor(0, 1, (), lambda _: True, lambda _: True, epochs=known((0, 3), (2, 4)))
    codec.add(0, 1_000, group_key("classic"), group_value(3, []))
    codec.add(1, 1_000, other_key(3, "modern"), group_epoch(7))
    codec.add(2, 1_000, other_key(6, "modern"), group_epoch(7))
    codec.add(3, 1_000, group_key("classic"), group_value(3, []))
    items = [item for _, inputs in codec.groups() for item in inputs]
    decide = [item for item in items if isinstance(item, MembershipRecord | GroupEpoch | TargetEpoch)]
    assert sorted((item.record, item.leader_epoch) for item in decide) == [(0, 3), (1, 3), (2, 4), (3, 4)]


def test_without_epochs_they_have_none() -> None:
    codec = Compactor(0, 1, (), lambda _: True, lambda _: True)
    codec.add(0, 1_000, group_key("classic"), group_value(3, []))
    ((_, (item,)),) = codec.groups()
    assert item.leader_epoch == -1


# Compacted ranges: their beginnings and ends, and the groups concerned.


A, B, C = (offset_commit_key(OffsetKey(1, group, "t", 0)) for group in "abc")
OTHER_OF_A = offset_commit_key(OffsetKey(1, "a", "t", 1))


def stretched(*events: tuple[int, int | bytes | None]) -> CompactedStretches:
    """Records by offset and key, and ranges of missing offsets, in this order."""
    stretches = CompactedStretches()
    for at, event in events:
        if isinstance(event, int):
            stretches.missing(at, event)
        else:
            stretches.add(at, event)
    return stretches


# The events, whether the last stretch is still open, and the stretches that each group gets.
STRETCHES: dict[str, tuple[list[tuple[int, int | bytes]], bool, dict[str, list[Compacted]]]] = {
    "a log without missing offsets concerns nobody": ([(0, A), (1, B), (2, A)], False, {}),
    # Each group's range ends after its own last record; the record at 13 cannot have been cleaned, nor those after it.
    "a stretch ends where a key comes again after the last missing offset": (
        [(5, 9), (10, A), (11, B), (12, OTHER_OF_A), (13, A), (14, C)],
        False,
        {"a": [Compacted(5, 13)], "b": [Compacted(5, 12)]},
    ),
    "a key that came before the last missing offset shows no end": (
        [(0, 3), (4, A), (5, 5), (6, A)],
        True,
        {"a": [Compacted(0, 7)]},
    ),
    # One part of a response, whose remaining records follow.
    "records between offsets that may be missing belong to the stretch": (
        [(5, 20), (3, B), (6, A), (8, A)],
        True,
        {"a": [Compacted(5, 9)]},
    ),
    "a second stretch stands beside the first": (
        [(0, 0), (1, A), (2, A), (3, 3), (4, A)],
        True,
        {"a": [Compacted(0, 2), Compacted(3, 5)]},
    ),
    "a key whose group is no text hides no other group": (
        [(5, 9), (10, A.replace(b"a", b"\xff", 1)), (11, B)],
        True,
        {"b": [Compacted(5, 12)]},
    ),
}


@pytest.mark.parametrize("case", STRETCHES)
def test_a_compacted_stretch_is_told_to_the_groups_that_it_concerns(case: str) -> None:
    events, is_open, concerned = STRETCHES[case]
    stretches = stretched(*events)
    assert (stretches.open, dict(stretches.groups())) == (is_open, concerned)


def test_a_part_of_a_stretch_has_the_end_of_the_stretch() -> None:
    records = ((10, A), (11, B), (12, OTHER_OF_A), (13, A), (14, C))
    whole = stretched((5, 9), *records)
    assert whole.newest_end == StretchEnd(5, 10, A, 13, {b"a": 12, b"b": 11})
    for since in (11, 12, 13):
        part = stretched((8, 9), *((offset, key) for offset, key in records if offset < since))
        part.end_at(whole.newest_end, since)
        assert not part.open
        assert dict(part.groups()) == {"a": [Compacted(8, 13)], "b": [Compacted(8, 12)]}


def test_columns_are_taken_as_records_are() -> None:
    records = [Record(offset, 1, key, b"") for offset, key in ((1, A), (2, None), (3, B), (4, B))]
    one, many = stretched((0, 0), *((record.offset, record.key) for record in records)), stretched((0, 0))
    taken = columns(records)
    assert np.array_equal(taken.offset, [1, 2, 3, 4])
    many.add_columns(taken)
    assert dict(one.groups()) == dict(many.groups()) == {"a": [Compacted(0, 2)], "b": [Compacted(0, 4)]}
