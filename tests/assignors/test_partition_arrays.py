from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from assignors import Assignment, CannotTell, Group, LeaderWouldFail, Subscription, assign, pack
from tests.assignors.sticky_chains import chain
from tests.oracle.java_assignors import Case

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


# (test_sticky_java_fuzz.py tests both forms with Java's releases.)
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
