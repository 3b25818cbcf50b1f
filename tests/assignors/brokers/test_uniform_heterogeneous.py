"""The brokers' uniform assignor by hand: who takes and who gives next, and how owners are kept and written out."""

from __future__ import annotations

import numpy as np

from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server
from assignors.brokers.uniform_heterogeneous import Balancer, CurrentOwners, assignment, kept


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
