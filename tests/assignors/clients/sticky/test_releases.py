"""Where Java's sticky strategies changed from one release to the next, by hand.

The results are those of the real classes (3.4.1, 3.5.1, 3.5.2, 3.7.1 and 4.3.1).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignors import Group, LeaderWouldFail, assign, owners, same
from assignors.clients.sticky import read_kafka_python, read_sticky
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.prior_owners import previous_owners
from assignors.clients.sticky.user_data import MemberData, write_kafka_python
from tests.assignors.clients.sticky.members import claiming, cooperative


def test_from_3_5_2_on_a_claim_that_loses_is_not_the_one_that_the_next_is_compared_with() -> None:
    members = tuple(
        cooperative(name, "t", owned={"t": (0,)}, generation=n) for name, n in (("a", 5), ("b", 1), ("c", 3))
    )
    group = Group(members, {"t": 3})
    assert owners(assign("cooperative-sticky", group, "3.5.1")) == {"t": {0: ["a", "c"], 1: ["b"], 2: ["b"]}}
    assert owners(assign("cooperative-sticky", group, "3.5.2")) == {"t": {0: ["a"], 1: ["b"], 2: ["c"]}}


@pytest.mark.parametrize("release", ["3.4.1", "3.5.1"])
def test_what_follows_a_partition_that_two_members_keep_is_dealt_once_more(release: str) -> None:
    held: dict[str, tuple[int, tuple[int, ...]]] = {"a": (5, (0,)), "b": (1, (0, 3)), "c": (3, (0,))}
    members = tuple(cooperative(name, "t", owned={"t": mine}, generation=n) for name, (n, mine) in held.items())
    result = assign("cooperative-sticky", Group(members, {"t": 4}), release)
    assert owners(result) == {"t": {0: ["a", "c"], 1: ["a"], 2: ["b"], 3: ["b", "c"]}}


@pytest.mark.parametrize("release", ["3.4.1", "3.5.1"])
def test_a_move_that_leaves_a_partition_with_its_other_owner_is_taken_back_if_it_is_no_better(release: str) -> None:
    # The leader takes c for the owner of x-0, which c does not want, and a has it too: b gets it, and nobody has less.
    members = (
        cooperative("a", "x", owned={"x": (0,)}, generation=5),
        cooperative("b", "x", owned={"x": (0,)}, generation=3),
        cooperative("c", "z", owned={"x": (0,), "z": (0, 1, 2)}, generation=4),
        cooperative("d", "z", owned={"z": (3, 4, 5)}, generation=5),
        cooperative("w1", "w", owned={"w": (0,)}, generation=5),
    )

    def owners_of_x(idle: int) -> list[str]:
        more = (cooperative(f"w{2 + number}", "w", owned={}, generation=5) for number in range(idle))
        group = Group((*members, *more), {"x": 1, "z": 6, "w": 1})
        return owners(assign("cooperative-sticky", group, release))["x"][0]

    # b is then one nearer to the four members that have something, and one further from each of those without anything.
    assert [owners_of_x(3), owners_of_x(4)] == [["a", "b"], ["a"]]


def test_from_3_7_1_on_what_returns_to_the_member_that_had_it_in_another_rack_is_not_held_back() -> None:
    member = replace(cooperative("a", "t", owned={"t": (0, 1)}), rack="r")
    assert assign("cooperative-sticky", Group((member,), {"t": 2}), "3.7.1", {"t": [["r"], ["s"]]}) == {
        "a": {"t": (0, 1)}
    }


def test_from_3_7_1_on_nobody_gets_one_more_by_its_rack_than_the_shares_allow() -> None:
    # c has the one that is left over, so that a, the only one in the rack of t-2 and t-3, gets one of them.
    told = (claiming("a", "t"), "r"), (claiming("b", "t"), "s"), (claiming("c", "t", t=(0, 1)), "u")
    group = Group(tuple(replace(member, rack=rack) for member, rack in told), {"t": 4})
    racks = {"t": [["u"], ["u"], ["r"], ["r"]]}
    with pytest.raises(LeaderWouldFail, match="below its quota"):
        assign("sticky", group, "3.5.1", racks)
    expected = {"a": {"t": (2,)}, "b": {"t": (3,)}, "c": {"t": (0, 1)}}
    assert same(assign("sticky", group, "3.7.1", racks), expected)


@pytest.mark.parametrize(("release", "of_a"), [("3.5.1", (0,)), ("3.5.2", ()), ("3.7.1", ()), ("4.3.1", ())])
def test_from_3_5_2_on_members_that_differ_by_one_are_balanced(release: str, of_a: tuple[int, ...]) -> None:
    # Before, b and c are not, and the search for a better spread gives y-0 back to a, which does not want it any more.
    members = (
        claiming("a", "z", 2, y=(0,), z=(0,)),
        claiming("b", "y", y=(0, 1, 2)),
        claiming("c", "y", y=(3, 4)),
        claiming("d", "z", z=(1,)),
    )
    result = assign("sticky", Group(members, {"y": 5, "z": 2}), release)
    of_b = tuple(number for number in (0, 1, 2) if number not in of_a)
    assert same(result, {"a": {"y": of_a, "z": (0,)}, "b": {"y": of_b}, "c": {"y": (3, 4)}, "d": {"z": (1,)}})


def test_of_two_members_that_had_a_partition_in_the_same_generation_the_first_was_its_previous_owner() -> None:
    members = claiming("a", "t", 1, t=(0,)), claiming("b", "t", 2, t=(0, 1)), claiming("c", "t", 2, t=(0, 2))
    indexed = IndexedGroup.of_java(Group((*members, claiming("d", "t", 3, t=(0, 1))), {"t": 3}))
    data = [read_sticky(member.user_data)[0] for member in indexed.members]
    assert previous_owners(indexed, data, -1) == {0: 1, 1: 1, 2: 2}


def test_kafka_python_writes_the_version_1_in_front() -> None:
    written = b"\0\1" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\3" + b"\0\0\0\7"
    assert write_kafka_python((("t", (0, 3)),), 7) == written
    assert read_kafka_python(written) == MemberData((("t", (0, 3)),), 7)
