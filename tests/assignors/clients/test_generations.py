"""The order of Java's maps in the sticky strategies before 3.0."""

from __future__ import annotations

from assignors.clients.sticky.generations import _in_hash_order


def test_partitions_are_in_the_order_of_a_hash_map_of_them_however_few_they_are() -> None:
    # `TopicPartition.hashCode` is 31 * (31 + number) + 116 for the topic t: 1077, 1108 and 1139 for the numbers 0 to 2,
    # whose places in a table of 16 are 5, 4 and 3.
    assert _in_hash_order([("t", 0), ("t", 1)]) == [("t", 1), ("t", 0)]
    assert _in_hash_order([("t", 1), ("t", 0), ("t", 2)]) == [("t", 2), ("t", 1), ("t", 0)]
    assert _in_hash_order([("t", 1)]) == [("t", 1)]
