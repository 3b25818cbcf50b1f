from __future__ import annotations

from typing import Any

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


def test_members_without_partitions_count_zero() -> None:
    assignment: Assignment = {"a": {"t": range(3), "u": (1,)}}

    assert counts(assignment, ["a", "b"]) == {"a": 4, "b": 0}


def test_owners_of_a_partition_are_all_that_have_it() -> None:
    assert owners({"a": {"t": (0,)}, "b": {"t": (0, 1)}}) == {"t": {0: ["a", "b"], 1: ["b"]}}


def test_the_same_partitions_of_many_topics_read_like_a_dict_of_them() -> None:
    plain = {"b": (3, 1), "a": (3, 1)}
    alike = Alike(dict.fromkeys(("b", "a")), (3, 1))

    assert (alike == plain, plain == alike, alike == {"b": (3, 1)}) == (True, True, False)
    assert (list(alike), len(alike), "a" in alike, "c" in alike) == (["b", "a"], 2, True, False)
    assert (list(alike.items()), list(alike.values())) == (list(plain.items()), list(plain.values()))
    assert (alike["a"], alike.get("c", ())) == ((3, 1), ())
    with pytest.raises(KeyError, match="c"):
        alike["c"]


ALIKE = Alike({"b": None, "a": None}, (3, 1))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        # Order and kind of collection do not matter.
        ({"a": {"t": range(3)}, "b": {}}, {"a": {"u": (), "t": [2, 0, 1]}}, True),
        # A partition listed twice is not the same as listed once.
        ({"a": {"t": (0, 1)}}, {"a": {"t": (0, 1, 1)}}, False),
        ({"a": {"t": (0, 0, 1)}}, {"a": {"t": (0, 1, 1)}}, False),
        ({"a": {"t": (0,)}}, {"b": {"t": (0,)}}, False),
        ({"m": ALIKE}, {"m": {"b": (1, 3), "a": (3, 1), "c": ()}}, True),
        ({"m": ALIKE}, {"m": {"b": (1, 3)}}, False),
        ({"m": ALIKE}, {"m": {"b": (1, 3), "a": (3, 1), "c": (0,)}}, False),
        ({"m": ALIKE}, {"m": {"b": (1, 3), "a": (3,)}}, False),
    ],
)
def test_assignments_are_the_same_where_each_member_has_the_same(
    one: Assignment, other: Assignment, is_same: bool
) -> None:
    assert same(one, other) == same(other, one) == is_same


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        (
            {"a": {"t": range(2)}, "b": {"t": (2,)}},
            {"b": {"t": (1, 2), "u": (0,)}, "a": {"t": (2,)}},
            [
                ("t", 0, ("a",), ()),
                ("t", 1, ("a",), ("b",)),
                ("t", 2, ("b",), ("a", "b")),
                ("u", 0, (), ("b",)),
            ],
        ),
        ({"a": {"t": range(2)}}, {"a": {"t": (1, 0)}}, []),
        # Two owners of one partition are no difference in whatever order.
        ({"a": {"t": (0, 1)}, "b": {"t": (0,)}}, {"b": {"t": (0, 1)}, "a": {"t": (0,)}}, [("t", 1, ("a",), ("b",))]),
    ],
)
def test_differences_name_what_should_be_and_what_is(
    expected: Assignment, actual: Assignment, found: list[tuple[Any, ...]]
) -> None:
    assert differences(expected, actual) == tuple(Difference(*one) for one in found)
