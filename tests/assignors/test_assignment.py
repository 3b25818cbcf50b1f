from __future__ import annotations

import pytest

from assignors import (
    Assignment,
    Difference,
    counts,
    differences,
    from_pairs,
    from_topics,
    owners,
    same,
    to_pairs,
)
from assignors.assignment import Alike


def test_a_topic_that_stands_twice_in_a_record_is_joined() -> None:
    assert from_topics({"a": (("t", (0,)), ("u", (1,)), ("t", (2,)))}) == {"a": {"t": (0, 2), "u": (1,)}}


def test_pairs_go_in_and_out_in_order() -> None:
    pairs = {"a": [("u", 1), ("t", 0)], "b": []}

    assert to_pairs(from_pairs(pairs)) == pairs


def test_order_and_kind_of_collection_do_not_matter() -> None:
    assert same({"a": {"t": range(3)}, "b": {}}, {"a": {"u": (), "t": [2, 0, 1]}})


def test_a_partition_listed_twice_is_not_the_same_as_listed_once() -> None:
    assert not same({"a": {"t": (0, 1)}}, {"a": {"t": (0, 1, 1)}})
    assert not same({"a": {"t": (0, 0, 1)}}, {"a": {"t": (0, 1, 1)}})


def test_another_owner_is_not_the_same() -> None:
    assert not same({"a": {"t": (0,)}}, {"b": {"t": (0,)}})


def test_members_without_partitions_count_zero() -> None:
    assignment: Assignment = {"a": {"t": range(3), "u": (1,)}}

    assert counts(assignment, ["a", "b"]) == {"a": 4, "b": 0}


def test_owners_of_a_partition_are_all_that_have_it() -> None:
    assert owners({"a": {"t": (0,)}, "b": {"t": (0, 1)}}) == {"t": {0: ["a", "b"], 1: ["b"]}}


def test_differences_name_what_should_be_and_what_is() -> None:
    expected: Assignment = {"a": {"t": range(2)}, "b": {"t": (2,)}}
    actual: Assignment = {"b": {"t": (1, 2), "u": (0,)}, "a": {"t": (2,)}}

    assert differences(expected, actual) == (
        Difference("t", 0, ("a",), ()),
        Difference("t", 1, ("a",), ("b",)),
        Difference("t", 2, ("b",), ("a", "b")),
        Difference("u", 0, (), ("b",)),
    )


def test_the_same_assignment_has_no_differences() -> None:
    assert differences({"a": {"t": range(2)}}, {"a": {"t": (1, 0)}}) == ()


def test_the_same_partitions_of_many_topics_read_like_a_dict_of_them() -> None:
    plain = {"b": (3, 1), "a": (3, 1)}
    alike = Alike(dict.fromkeys(("b", "a")), (3, 1))

    assert (alike == plain, plain == alike, alike == {"b": (3, 1)}) == (True, True, False)
    assert (list(alike), len(alike), "a" in alike, "c" in alike) == (["b", "a"], 2, True, False)
    assert (list(alike.items()), list(alike.values())) == (list(plain.items()), list(plain.values()))
    assert (alike["a"], alike.get("c", ())) == ((3, 1), ())
    with pytest.raises(KeyError, match="c"):
        alike["c"]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ({"b": (1, 3), "a": (3, 1), "c": ()}, True),
        ({"b": (1, 3)}, False),
        ({"b": (1, 3), "a": (3, 1), "c": (0,)}, False),
        ({"b": (1, 3), "a": (3,)}, False),
    ],
)
def test_a_member_has_the_same_whether_as_a_dict_or_not(other: dict[str, tuple[int, ...]], is_same: bool) -> None:
    alike = Alike({"b": None, "a": None}, (3, 1))

    assert same({"m": alike}, {"m": other}) == is_same
    assert same({"m": other}, {"m": alike}) == is_same


def test_two_owners_of_one_partition_are_no_difference_in_whatever_order() -> None:
    expected: Assignment = {"a": {"t": (0, 1)}, "b": {"t": (0,)}}
    actual: Assignment = {"b": {"t": (0, 1)}, "a": {"t": (0,)}}

    assert differences(expected, actual) == (Difference("t", 1, ("a",), ("b",)),)
