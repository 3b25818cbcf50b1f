"""Compacted ranges: their beginnings and ends, and the groups concerned."""

from __future__ import annotations

import numpy as np

from streaming.offsets_log import CompactedStretches, OffsetKey, StretchEnd
from streaming.offsets_log.codec.keys import offset_commit_key
from streaming.records import Compacted
from tests.offsets_log.compacting import columns
from tests.offsets_log.one_by_one import Record

A, B, C = (offset_commit_key(OffsetKey(1, group, "t", 0)) for group in "abc")
OTHER_OF_A = offset_commit_key(OffsetKey(1, "a", "t", 1))


def found(stretches: CompactedStretches) -> dict[str, list[Compacted]]:
    return dict(stretches.groups())


def test_a_log_without_missing_offsets_concerns_nobody() -> None:
    stretches = CompactedStretches()
    for offset, key in enumerate((A, B, A)):
        stretches.add(offset, key)
    assert not stretches.open
    assert found(stretches) == {}


def test_a_stretch_ends_where_a_key_comes_again_after_the_last_missing_offset() -> None:
    stretches = CompactedStretches()
    stretches.missing(5, 9)
    for offset, key in ((10, A), (11, B), (12, OTHER_OF_A), (13, A), (14, C)):
        stretches.add(offset, key)
    assert not stretches.open
    # Each group's range ends after its own last record; the record at 13 cannot have been cleaned, nor those after it.
    assert found(stretches) == {"a": [Compacted(5, 13)], "b": [Compacted(5, 12)]}


def test_a_key_that_came_before_the_last_missing_offset_shows_no_end() -> None:
    stretches = CompactedStretches()
    stretches.missing(0, 3)
    stretches.add(4, A)
    stretches.missing(5, 5)
    stretches.add(6, A)
    assert stretches.open
    assert found(stretches) == {"a": [Compacted(0, 7)]}


def test_records_between_offsets_that_may_be_missing_belong_to_the_stretch() -> None:
    stretches = CompactedStretches()
    stretches.missing(5, 20)  # one part of a response; its remaining records follow
    for offset in (3, 6, 8):
        stretches.add(offset, A if offset > 3 else B)
    assert stretches.open
    assert found(stretches) == {"a": [Compacted(5, 9)]}


def test_a_second_stretch_is_told_beside_the_first() -> None:
    stretches = CompactedStretches()
    stretches.missing(0, 0)
    for offset, key in ((1, A), (2, A)):
        stretches.add(offset, key)
    stretches.missing(3, 3)
    stretches.add(4, A)
    assert found(stretches) == {"a": [Compacted(0, 2), Compacted(3, 5)]}


def test_a_part_of_a_stretch_has_the_end_of_the_stretch() -> None:
    records = ((10, A), (11, B), (12, OTHER_OF_A), (13, A), (14, C))
    whole = CompactedStretches()
    whole.missing(5, 9)
    for offset, key in records:
        whole.add(offset, key)
    assert whole.newest_end == StretchEnd(5, 10, A, 13, {b"a": 12, b"b": 11})
    for since in (11, 12, 13):
        part = CompactedStretches()
        part.missing(8, 9)
        for offset, key in records:
            if offset < since:
                part.add(offset, key)
        part.end_at(whole.newest_end, since)
        assert not part.open
        assert found(part) == {"a": [Compacted(8, 13)], "b": [Compacted(8, 12)]}


def test_columns_are_taken_as_records_are() -> None:
    records = [Record(offset, 1, key, b"") for offset, key in ((1, A), (2, None), (3, B), (4, B))]
    one, many = CompactedStretches(), CompactedStretches()
    for stretches in (one, many):
        stretches.missing(0, 0)
    for record in records:
        one.add(record.offset, record.key)
    taken = columns(records)
    assert np.array_equal(taken.offset, [1, 2, 3, 4])
    many.add_columns(taken)
    assert found(one) == found(many) == {"a": [Compacted(0, 2)], "b": [Compacted(0, 4)]}


def test_a_key_whose_group_is_no_text_hides_no_other_group() -> None:
    stretches = CompactedStretches()
    stretches.missing(5, 9)
    odd = A.replace(b"a", b"\xff", 1)
    for offset, key in ((10, odd), (11, B)):
        stretches.add(offset, key)
    assert found(stretches) == {"b": [Compacted(5, 12)]}
