"""The order of Java's maps in the sticky strategies before 3.0."""

from __future__ import annotations

import pytest

from assignors import CannotTell
from assignors.clients.sticky.generations import _in_hash_order


def test_partitions_are_in_the_order_of_a_hash_map_of_them_however_few_they_are() -> None:
    # `TopicPartition.hashCode` is 31 * (31 + number) + 116 for the topic t: 1077, 1108 and 1139 for the numbers 0 to 2,
    # whose places in a table of 16 are 5, 4 and 3.
    assert _in_hash_order([("t", 0), ("t", 1)]) == [("t", 1), ("t", 0)]
    assert _in_hash_order([("t", 1), ("t", 0), ("t", 2)]) == [("t", 2), ("t", 1), ("t", 0)]
    assert _in_hash_order([("t", 1)]) == [("t", 1)]


def test_nine_partitions_share_a_bucket_of_the_smallest_table_only_as_long_as_there_is_that_table() -> None:
    # The hash of partition 0 of a topic with a name of one character is 961 and its code.
    alike = [(chr(16 * number - 961), 0) for number in range(80, 89)]
    others = [(chr(16 * 80 - 961 + number), 0) for number in range(1, 6)]
    for crowded in ([*alike[:8], *others[:4], alike[8]], [*alike, *others[:3]], alike):
        with pytest.raises(CannotTell, match="collide"):
            _in_hash_order(crowded)
    assert _in_hash_order([*alike[:8], *others, alike[8]]) == [*alike[::2], *others, *alike[1::2]]
    assert _in_hash_order([*alike[:8], *others[:4]]) == [*alike[:8], *others[:4]]


def test_nine_partitions_that_share_a_bucket_only_of_the_table_of_32_cannot_be_told() -> None:
    # The ninth of them comes after the thirteenth partition, with which the table of 16 has grown.
    alike = [(chr(32 * number - 961), 0) for number in range(40, 49)]
    others = [(chr(32 * 40 - 961 + number), 0) for number in range(1, 6)]
    with pytest.raises(CannotTell, match="collide"):
        _in_hash_order([*alike[:8], *others, alike[8]])
    assert _in_hash_order([*alike[:8], *others]) == [*alike[:8], *others]
