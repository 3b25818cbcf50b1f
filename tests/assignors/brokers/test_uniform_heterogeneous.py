"""The brokers' uniform assignor by hand: who takes and who gives next, and how owners are kept and written out."""

from __future__ import annotations

import numpy as np

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server
from assignors.brokers.uniform_heterogeneous import Balancer, CurrentOwners, assignment, kept


def test_the_smallest_take_in_turn_and_those_who_are_reached_join_them() -> None:
    sizes = [2, 0, 1]
    balancer = Balancer(sizes, [0, 1, 2])
    taken = []
    for _ in range(6):
        member = balancer.next_taker()
        sizes[member] += 1
        taken.append(member)
    # 1 has none; at one it is joined by 2, at two by 0.
    assert taken == [1, 1, 2, 1, 2, 0]


def test_several_takers_at_once_are_those_one_by_one() -> None:
    sizes = [2, 0, 1]
    assert Balancer(sizes, [0, 1, 2]).next_takers(6) == [1, 1, 2, 1, 2, 0]
    assert sizes == [3, 3, 3]


def test_the_largest_give_in_turn_down_to_the_first_member() -> None:
    sizes = [2, 2, 3]
    balancer = Balancer(sizes, [0, 1, 2])
    given = []
    for _ in range(4):
        member = balancer.next_giver()
        assert member is not None
        sizes[member] -= 1
        given.append(member)
    assert given == [2, 2, 1, 0]


def test_a_member_with_nothing_to_give_is_asked_no_more_and_in_the_end_there_is_none() -> None:
    balancer = Balancer([1, 1], [0, 1])
    assert balancer.next_giver() == 1
    balancer.exclude_last_giver()
    assert balancer.next_giver() == 0
    balancer.exclude_last_giver()
    assert balancer.next_giver() is None


def test_levels_that_differ_by_one_are_balanced() -> None:
    balancer = Balancer([0, 2], [0, 1])
    assert (balancer.spread, balancer.balanced) == (2, False)
    balancer.next_taker()
    balancer.next_giver()
    assert not balancer.balanced


def test_where_all_of_the_upper_range_has_nothing_to_give_it_begins_again_below() -> None:
    balancer = Balancer([1, 3], [0, 1])
    assert balancer.next_giver() == 1
    balancer.exclude_last_giver()
    assert not balancer.balanced
    assert balancer.next_giver() == 0
    assert balancer.balanced  # one, above the lower range's zero


T, U = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"


def test_partitions_of_more_than_65536_members_are_written_out_one_by_one() -> None:
    members = (1 << 16) + 1
    last = members - 1
    owners = np.array([last, 0, last], dtype=np.int32)
    current = CurrentOwners(
        [str(number) for number in range(members)], {T: [0, last]}, owners, np.array([3]), {T: owners}, [0] * members
    )
    told = {member: topics for member, topics in assignment(current).items() if topics}
    assert told == {"0": {T: [1]}, str(last): {T: [0, 2]}}


def test_a_topic_of_which_a_target_lists_no_partition_is_not_in_the_result() -> None:
    members = (
        ServerMember("a", ("t", "u"), ((T, ()), (U, (0, 1)))),
        ServerMember("b", ("t",), ((T, (0, 1)),)),
    )
    group = ServerGroup(members, {"t": ServerTopic(T, 2), "u": ServerTopic(U, 2)})
    assert kept(group).kept == [{U: (0, 1)}, {T: (0, 1)}]
    assert assign_on_server("server-uniform", group, "4.0.1") == {"a": {U: (0, 1)}, "b": {T: (0, 1)}}


def test_partitions_that_two_targets_list_stay_with_both() -> None:
    members = (
        ServerMember("a", ("t", "u"), ((T, (0, 1, 2)),)),
        ServerMember("b", ("t",), ((T, (1, 2, 3)),)),
        ServerMember("c", ("u",), ((U, (0,)),)),
    )
    group = ServerGroup(members, {"t": ServerTopic(T, 4), "u": ServerTopic(U, 2)})
    # What the class of Kafka 4.4.0 gives.
    assert assign_on_server("server-uniform", group, "4.4.0") == {
        "a": {T: [0, 1, 2]}, "b": {T: [1, 2, 3]}, "c": {U: [0, 1]}
    }  # fmt: skip
