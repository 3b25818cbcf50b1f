"""Who takes and who gives next, by hand."""

from __future__ import annotations

from assignors.brokers.uniform_heterogeneous import Balancer


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
