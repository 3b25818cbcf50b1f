from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from assignors import (
    Assignment,
    CannotTell,
    Difference,
    Group,
    LeaderWouldFail,
    Subscription,
    assign,
    counts,
    differences,
    from_pairs,
    from_topics,
    owners,
    pack,
    same,
    to_pairs,
)
from tests.assignors.sticky_chains import chain
from tests.oracle.java_assignors import Case


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


PAIRS = (("b", (3, 1)), ("a", ()), ("b", (7,)))


def test_packed_partitions_are_the_pairs_in_their_order() -> None:
    packed = pack(PAIRS)

    assert (packed.topics, packed.lengths.tolist(), packed.numbers.tolist()) == (("b", "a", "b"), [2, 0, 1], [3, 1, 7])
    assert tuple(packed) == PAIRS
    assert (len(packed), packed[0], packed[-1], packed[1:]) == (3, PAIRS[0], PAIRS[-1], PAIRS[1:])
    assert all(type(number) is int for _, numbers in packed for number in numbers)


def test_packed_partitions_equal_and_hash_as_the_tuple_of_the_pairs() -> None:
    assert pack(PAIRS) == PAIRS
    plain: object = PAIRS
    assert plain == pack(PAIRS)
    assert pack(PAIRS) == pack(PAIRS)
    assert hash(pack(PAIRS)) == hash(PAIRS)
    assert pack(PAIRS) != PAIRS[:2]
    assert pack(PAIRS) != pack((("b", (3,)), ("a", (1,)), ("b", (7,))))
    assert pack(PAIRS) != "b"
    assert not pack(())


def test_a_group_with_packed_partitions_equals_the_one_with_pairs() -> None:
    member = Subscription("m", ("a", "b"), owned=PAIRS)

    assert replace(member, owned=pack(PAIRS)) == member


def test_what_was_assigned_can_be_packed_as_it_is() -> None:
    group = Group((Subscription("m", ("a", "b")), Subscription("n", ("a",))), {"a": 4, "b": 2})
    assigned = assign("range", group)

    assert pack(assigned["m"]) == (("a", (0, 1)), ("b", (0, 1)))
    assert pack(pack(assigned["n"])) == (("a", (2, 3)),)


# test_sticky_java_fuzz.py tests both forms with Java's releases.
@pytest.mark.parametrize("library", ["librdkafka", "kafka-python"])
def test_packed_and_plain_partitions_give_the_same_assignment(library: str) -> None:
    random = Random(f"packed {library}")
    compared = 0

    def decide(case: Case) -> Assignment | None:
        nonlocal compared
        packed, plain = (
            _decided(replace(case.group, members=tuple(members)), library)
            for members in (
                (replace(member, owned=pack(member.owned)) for member in case.group.members),
                (replace(member, owned=tuple(member.owned)) for member in case.group.members),
            )
        )
        assert packed == plain
        compared += 1
        return None if isinstance(packed, str) else packed

    while compared < 300:
        for _ in chain(random, "cooperative-sticky", decide):
            pass


def _decided(group: Group, library: str) -> Assignment | str:
    try:
        return assign("cooperative-sticky", group, library)
    except (CannotTell, LeaderWouldFail) as error:
        return error.reason


def test_two_owners_of_one_partition_are_no_difference_in_whatever_order() -> None:
    expected: Assignment = {"a": {"t": (0, 1)}, "b": {"t": (0,)}}
    actual: Assignment = {"b": {"t": (0, 1)}, "a": {"t": (0,)}}

    assert differences(expected, actual) == (Difference("t", 1, ("a",), ("b",)),)
