"""The order of `java.util.HashMap`; expected values are from the class itself."""

from __future__ import annotations

from random import Random

import pytest

from assignors import CannotTell
from assignors.clients.sticky.different import _in_hash_order
from assignors.hash_map import (
    in_computed_map,
    in_hash_map,
    in_hash_set,
    member_orders,
    names_in_hash_order,
    string_hash,
)


def test_strings_hash_as_in_java() -> None:
    assert string_hash("") == 0
    assert string_hash("hello") == 99162322
    assert string_hash("polygenelubricants") == 0x80000000
    assert string_hash("\U0001f600") == 0x1B0D63


def test_a_map_is_walked_by_buckets_and_a_set_has_the_size_of_what_it_is_made_of() -> None:
    assert in_hash_map([17, 1, 16, 0]) == [2, 3, 0, 1]
    # Thirteen keys make the table 32 wide; a set created from twelve is as wide.
    assert in_hash_map([16, *range(12)])[-1] == 0
    assert in_hash_set([16, *range(11)])[-1] == 0
    assert names_in_hash_order(["b", "a"]) == ["a", "b"]


def test_computed_keys_come_first_in_their_bucket_and_the_table_grows_a_call_later() -> None:
    codes = [16, 0, 32, *range(1, 11)]

    walked = [[codes[at] for at in in_computed_map(codes, 16, before)] for before in (12, 13)]

    assert walked[0] == [32, 0, 16, *range(1, 11)]
    # Another call, for a key that is there already, doubles the table.
    assert walked[1] == [32, 0, *range(1, 11), 16]
    with pytest.raises(CannotTell, match="one bucket"):
        in_computed_map([16 * number for number in range(8)], 16, 7)


def test_many_keys_are_in_the_order_of_their_buckets() -> None:
    codes = Random(1).sample(range(1 << 32), 1000)
    assert in_hash_map(codes) == sorted(range(1000), key=lambda at: (codes[at] ^ codes[at] >> 16) % 2048)


ALIKE = [a + b + c + d for a in ("Aa", "BB") for b in ("Aa", "BB") for c in ("Aa", "BB") for d in ("Aa", "BB")]


def test_only_members_that_share_a_bucket_can_stand_in_several_orders() -> None:
    # "a" hashes to 97, "q" to 113: one bucket of sixteen.
    assert sorted(member_orders(["q", "b", "a"], 9)) == [["a", "q", "b"], ["q", "a", "b"]]
    assert member_orders(["c", "b", "a"], 9) == [["a", "b", "c"]]


def test_partitions_are_in_the_order_of_a_hash_map_of_them_however_few_they_are() -> None:
    # `TopicPartition.hashCode` is 31 * (31 + number) + 116 for the topic t: 1077, 1108 and 1139 for the numbers 0 to 2,
    # whose places in a table of 16 are 5, 4 and 3.
    assert _in_hash_order([("t", 0), ("t", 1)]) == [("t", 1), ("t", 0)]
    assert _in_hash_order([("t", 1), ("t", 0), ("t", 2)]) == [("t", 2), ("t", 1), ("t", 0)]
    assert _in_hash_order([("t", 1)]) == [("t", 1)]
