"""Parts of the sticky strategies, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from assignors import CannotTell, Group, Subscription, assign, owners
from assignors.clients.sticky import kafka_python
from assignors.clients.sticky.balance import pairwise_differences
from assignors.clients.sticky.claims import previous_owners, read_sticky
from assignors.clients.sticky.constrained import _collect
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.task import Movements
from tests.assignors.clients.sticky.members import claiming, cooperative


@pytest.mark.parametrize(
    ("sizes", "score"),
    [
        ([], 0),
        ([5], 0),
        ([4, 1, 2], 3 + 1 + 2),
        ([0, 0, 3, 3], 4 * 3),
        ([0, 2**31 - 1], 2**31 - 1),
        ([0, 2**31], -(2**31)),  # a Java int has overflowed
    ],
)
def test_the_score_is_the_sum_of_the_differences_of_all_pairs(sizes: list[int], score: int) -> None:
    assert pairwise_differences(sizes) == score


def test_the_first_of_java_s_set_moves_back_where_several_partitions_moved_the_other_way() -> None:
    # `TopicPartition.hashCode` is 31 * (31 + number) + 121 for the topic y: the numbers 3 and 8 fall into the places 7
    # and 2 of a table of 16, so 8 is the first.
    group = IndexedGroup.of_java(
        Group((Subscription("a", ("x", "y")), Subscription("b", ("x", "y"))), {"x": 2, "y": 9})
    )
    x = 2
    movements = Movements(group, [0] * 2 + [1] * 9)
    movements.record(x + 3, 0, 1)
    movements.record(x + 8, 0, 1)
    assert movements.actual(x + 0, 1, 0) == x + 8


def test_which_of_two_partitions_kafka_python_moves_back_depends_on_its_hash_seed() -> None:
    members = Subscription("a", ("y",)), Subscription("b", ("y",))
    movements = kafka_python._Movements(IndexedGroup.of_others(Group(members, {"y": 3}), members), [0] * 3)
    movements.record(1, 0, 1)
    assert movements.actual(0, 1, 0) == 1
    movements.record(2, 0, 1)
    with pytest.raises(CannotTell, match="hash seed"):
        movements.actual(0, 1, 0)


def test_partitions_of_more_than_65536_members_go_to_their_takers() -> None:
    last = 1 << 16
    kept = [np.empty(0, dtype=np.int64)] * (last + 1)
    kept[0] = np.array([7])
    lists = _collect(kept, np.array([3, 4, 5]), np.array([last, 0, last]))
    told = {member: ids.tolist() for member, ids in enumerate(lists) if ids.size}
    assert told == {0: [7, 4], last: [3, 5]}


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


def test_of_two_members_that_had_a_partition_in_the_same_generation_the_first_was_its_previous_owner() -> None:
    members = claiming("a", "t", 1, t=(0,)), claiming("b", "t", 2, t=(0, 1)), claiming("c", "t", 2, t=(0, 2))
    indexed = IndexedGroup.of_java(Group((*members, claiming("d", "t", 3, t=(0, 1))), {"t": 3}))
    data = [read_sticky(member.user_data)[0] for member in indexed.members]
    assert previous_owners(indexed, data, -1) == {0: 1, 1: 1, 2: 2}
