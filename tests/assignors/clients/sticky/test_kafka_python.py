"""kafka-python's sticky. Results are those of kafka-python 3.0.12 itself."""

from __future__ import annotations

import pytest

from assignors import (
    CannotTell,
    Group,
    LeaderWouldFail,
    assign,
    same,
)
from tests.assignors.clients.sticky.members import claiming, read_by_kafka_python


def test_kafka_python_s_order_of_several_partitions_with_an_earlier_owner_depends_on_its_hash_seed() -> None:
    members = read_by_kafka_python(claiming("a", "x", 1, x=(0, 1)), claiming("b", "x", 3, x=(0, 1)))
    with pytest.raises(CannotTell, match="hash seed"):
        assign("sticky", Group(members, {"x": 2}), "kafka-python:3.0.12")


def test_kafka_python_s_order_of_one_partition_with_an_earlier_owner_depends_on_no_seed() -> None:
    members = read_by_kafka_python(claiming("a", "x", 1, x=(0,)), claiming("b", "x", 3, x=(0, 1, 2)))
    result = assign("sticky", Group(members, {"x": 3}), "kafka-python:3.0.12")
    assert same(result, {"a": {"x": (0,)}, "b": {"x": (1, 2)}})


def test_kafka_python_throws_where_the_previous_owner_takes_no_part_and_the_present_one_has_two() -> None:
    members = read_by_kafka_python(claiming("a", "", 2, x=(0,)), claiming("b", "x", x=(0, 1)), claiming("c", "x"))
    with pytest.raises(LeaderWouldFail, match="KeyError"):
        assign("sticky", Group(members, {"x": 2}), "kafka-python:3.0.12")


def test_kafka_python_goes_on_where_the_previous_owner_takes_no_part_and_the_present_one_has_one() -> None:
    members = claiming("a", "y", 3, x=(0,), y=(0,)), claiming("b", "x y", 3, y=(0,))
    members = read_by_kafka_python(*members, claiming("c", "", 1, y=(0,)), claiming("d", "y", 2, x=(1,)))
    result = assign("sticky", Group(members, {"x": 2, "y": 1}), "kafka-python:3.0.12")
    assert same(result, {"a": {"y": (0,)}, "b": {"x": (0, 1)}})


def test_kafka_python_moves_a_partition_to_an_earlier_owner_while_two_members_differ_by_one() -> None:
    # a has one more of x than b. So x-0 moves to e, which had it before.
    e, c = claiming("e", "y", 2, x=(0,)), claiming("c", "y", y=(0,))
    members = read_by_kafka_python(e, claiming("a", "x", x=(0, 1, 2)), claiming("b", "x", x=(3, 4)), c)
    result = assign("sticky", Group(members, {"x": 5, "y": 1}), "kafka-python:3.0.12")
    assert same(result, {"e": {"x": (0,)}, "a": {"x": (1, 2)}, "b": {"x": (3, 4)}, "c": {"y": (0,)}})


def test_kafka_python_moves_a_partition_back_as_well_as_the_one_that_moves_in_its_place() -> None:
    # y-0 has moved from b to c, and y-2 from d to b. Then y-0 should move on to d: y-2 returns to d, and y-0 to b.
    a, b = claiming("a", "x", x=(0, 1, 2, 3, 4, 5, 6)), claiming("b", "x y", y=(0,))
    members = read_by_kafka_python(a, b, claiming("c", "x", 2, x=(2,), y=(0, 1)), claiming("d", "y z", y=(1, 2, 4)))
    result = assign("sticky", Group(members, {"x": 7, "y": 5, "z": 1}), "kafka-python:3.0.12")
    assert same(
        result,
        {
            "a": {"x": (3, 4, 5, 6)},
            "b": {"x": (0,), "y": (0, 3)},
            "c": {"x": (1, 2), "y": (1,)},
            "d": {"y": (2, 4), "z": (0,)},
        },
    )


def test_kafka_python_takes_its_moves_back_where_they_make_the_group_no_more_even() -> None:
    # x-1 moves from c to d. By then a, which had x-0 before, counts as a member too: 1, 2, 1 and 0 differ as much as 1,
    # 3 and 0 did, by 6 over all pairs.
    a, d = claiming("a", "", 1, x=(0,)), claiming("d", "x")
    members = read_by_kafka_python(a, claiming("b", "x", x=(0,)), claiming("c", "x", x=(1, 2, 3)), d)
    result = assign("sticky", Group(members, {"x": 4}), "kafka-python:3.0.12")
    assert same(result, {"b": {"x": (0,)}, "c": {"x": (1, 2, 3)}})
