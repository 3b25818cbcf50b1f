"""Balance and moves: hand-written values, and small groups compared with every possible assignment."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import (
    Assignment,
    Group,
    Subscription,
    assign,
    at_most,
    balance,
    counts,
    from_pairs,
    imbalance,
    imbalance_optimal,
    loads,
    moves,
    optimal_moves,
)
from assignors.measures.optimal_imbalance import smallest_maximum
from assignors.measures.optimal_moves import MOST_PARTITIONS, _shift
from tests.examples import examples


def alike(members: int, partitions: int) -> Group:
    return Group(tuple(Subscription(f"m{i}", ("t",)) for i in range(members)), {"t": partitions})


class TestBalance:
    def test_it_tells_the_emptiest_and_the_fullest_member(self) -> None:
        told = balance([4, 2, 0])

        assert told is not None
        assert (told.least, told.most, told.imbalance) == (0, 4, pytest.approx(1.0))
        assert balance([]) is None

    def test_a_members_load_is_the_sum_over_its_partitions(self) -> None:
        assignment = from_pairs({"a": [("t", 0), ("t", 2), ("u", 0)], "b": [("t", 1)]})

        # The load of u, and of a partition beyond the list, is unknown.
        assert loads(assignment, {"t": [1, 2]}, ("a", "b", "c")) == {"a": 1, "b": 2, "c": 0}


class TestImbalance:
    def test_it_is_the_fullest_member_over_the_mean_minus_one(self) -> None:
        assert imbalance([4, 2, 0]) == pytest.approx(1.0)

    def test_even_is_zero(self) -> None:
        assert imbalance([3, 3]) == 0.0

    def test_nothing_assigned_has_no_imbalance(self) -> None:
        assert imbalance([0, 0]) is None
        assert imbalance([]) is None

    def test_three_partitions_on_five_members_cannot_be_more_even_than_two_thirds(self) -> None:
        assert imbalance_optimal(alike(5, 3)) == pytest.approx(2 / 3)

    def test_a_topic_of_one_member_alone_bounds_the_least(self) -> None:
        group = Group((Subscription("a", ("t",)), Subscription("b", ("t", "u"))), {"t": 2, "u": 10})

        # b must have all ten of u; a takes both of t.
        assert imbalance_optimal(group) == pytest.approx(10 / 6 - 1)

    def test_a_bottleneck_of_two_topics_is_found(self) -> None:
        group = Group(
            (Subscription("a", ("t", "u", "v")), Subscription("b", ("t", "u")), Subscription("c", ("v",))),
            {"t": 5, "u": 6, "v": 1},
        )

        assert smallest_maximum(group) == 6

    def test_members_without_a_topic_count_in_the_mean(self) -> None:
        group = Group((Subscription("a", ("t",)), Subscription("b", ())), {"t": 2})

        assert imbalance_optimal(group) == pytest.approx(1.0)

    def test_nothing_to_assign_has_no_least(self) -> None:
        assert imbalance_optimal(Group((Subscription("a", ("gone",)),), {})) is None


class TestMoves:
    before: ClassVar[Assignment] = {"a": {"t": (0, 1)}, "b": {"t": (2,), "u": (0,)}}

    def test_a_changed_owner_is_a_move(self) -> None:
        assert moves(self.before, {"a": {"t": (0,)}, "b": {"t": (1, 2), "u": (0,)}}) == 1

    def test_the_same_assignment_has_none(self) -> None:
        assert moves(self.before, {"b": {"u": [0], "t": [2]}, "a": {"t": range(2)}}) == 0

    def test_an_owner_that_left_makes_its_partitions_move(self) -> None:
        assert moves(self.before, {"b": {"t": (0, 1, 2), "u": (0,)}}) == 2

    def test_a_first_owner_and_a_lost_owner_are_no_moves(self) -> None:
        assert moves(self.before, {"a": {"t": (0, 1), "v": (0,)}, "b": {"t": (2,)}}) == 0

    def test_a_partition_of_two_owners_stays_while_one_of_them_does(self) -> None:
        twice: Assignment = {"a": {"t": (0,)}, "b": {"t": (0,)}}

        assert moves(twice, {"b": {"t": (0,)}}) == 0
        assert moves(twice, {"c": {"t": (0,)}}) == 1


class TestLeastMoves:
    def test_a_member_that_joins_takes_its_share_and_no_more(self) -> None:
        before = assign("range", alike(2, 6))

        assert optimal_moves(before, alike(3, 6)) == 2

    def test_a_member_that_leaves_gives_what_it_had(self) -> None:
        before = assign("range", alike(3, 6))

        assert optimal_moves(before, alike(2, 6)) == 2

    def test_the_larger_shares_stay_where_they_are(self) -> None:
        before: Assignment = {"m0": {"t": (0,)}, "m1": {"t": (1, 2)}}

        assert optimal_moves(before, alike(2, 3)) == 0

    def test_even_means_no_two_members_differ_by_more_than_one(self) -> None:
        # Two, two, two and zero: the maximum could not be smaller, but the new member could have one.
        before: Assignment = {f"m{i}": {"t": (2 * i, 2 * i + 1)} for i in range(3)}

        assert optimal_moves(before, alike(4, 6)) == 1

    def test_who_has_exactly_the_smaller_share_keeps_that_and_no_more(self) -> None:
        # Two, two and none of seven: one of them may get three, and nothing moves for it.
        before: Assignment = {"m0": {"t": (0, 1)}, "m1": {"t": (2, 3)}}

        assert optimal_moves(before, alike(3, 7)) == 0

    def test_new_partitions_are_no_moves(self) -> None:
        before = assign("range", alike(2, 2))

        assert optimal_moves(before, alike(2, 10)) == 0

    def test_partitions_of_a_topic_that_is_gone_are_no_moves(self) -> None:
        before: Assignment = {"m0": {"gone": (0, 1, 2)}, "m1": {"t": (0,)}}

        assert optimal_moves(before, alike(2, 2)) == 0

    def test_partitions_beyond_the_count_are_no_moves(self) -> None:
        # t has 0 and 1.
        assert optimal_moves({"m0": {"t": (0, 2)}}, alike(2, 2)) == 0

    def test_different_subscriptions_are_balanced_as_far_as_they_allow(self) -> None:
        group = Group((Subscription("a", ("t",)), Subscription("b", ("t", "u"))), {"t": 4, "u": 4})
        before: Assignment = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3), "u": (0, 1, 2, 3)}}

        assert optimal_moves(before, group) == 3

    def test_a_partition_returns_from_a_member_with_nothing_else_to_the_one_that_had_it(self) -> None:
        # b keeps t-0, c has v-0, and two of the others one of u each.
        topics = {"a": "tu", "b": "tv", "c": "tuv", "d": "t", "e": "u", "f": "u"}
        group = Group(tuple(Subscription(m, tuple(of)) for m, of in topics.items()), {"t": 1, "u": 2, "v": 1})

        assert optimal_moves({"b": {"t": (0,)}}, group) == 0

    def test_a_partition_moves_to_each_of_two_members_with_fewer_in_a_few_rounds(self) -> None:
        # b gives one of its seven to a, which gets the new t-0 and u-4 as well, and one to c.
        topics = {"a": "tuv", "b": "uv", "c": "v"}
        group = Group(tuple(Subscription(m, tuple(of)) for m, of in topics.items()), {"t": 1, "u": 5, "v": 7})
        before: Assignment = {"a": {"v": (0,)}, "b": {"u": (0, 1, 2, 3), "v": (1, 2, 3)}, "c": {"v": (4, 5, 6)}}

        with at_most(10_000):
            assert optimal_moves(before, group) == 2

    def test_a_partition_of_two_owners_gives_no_figure(self) -> None:
        before: Assignment = {"m0": {"t": (0,)}, "m1": {"t": (0,)}}

        assert optimal_moves(before, alike(2, 2)) is None

    @pytest.mark.parametrize(("idle", "told"), [(1, 1), (30, None)])
    def test_too_large_a_search_gives_no_figure(self, idle: int, told: int | None) -> None:
        # With a million pairs of a topic and a member it may take 40 rounds: enough for one move and not for thirty.
        topics = tuple(f"t{i}" for i in range(1_000))
        members = tuple(Subscription(f"m{i}", topics[:-1] if i % 2 else topics) for i in range(1_000))
        before = {f"m{i}": {topics[i]: (0,)} for i in range(1_000 - idle)}
        before["m0"] |= dict.fromkeys(topics[1_000 - idle :], (0,))

        assert optimal_moves(before, Group(members, dict.fromkeys(topics, 1))) == told

    def test_the_moves_of_as_many_partitions_as_the_limit_are_counted_and_not_of_one_more(self) -> None:
        members = Subscription("a", ("t",)), Subscription("b", ("u",))
        before: Assignment = {"a": {"t": range(MOST_PARTITIONS - 1)}, "b": {"u": (0,)}}

        assert optimal_moves(before, Group(members, {"t": MOST_PARTITIONS - 1, "u": 1})) == 0
        assert optimal_moves(before, Group(members, {"t": MOST_PARTITIONS - 1, "u": 2})) is None


_TOPICS = ("t0", "t1", "t2")
_MEMBERS = ("a", "b", "c")


@st.composite
def _changes(draw: st.DrawFn) -> tuple[Group, Assignment]:
    """A small group and its previous owners, including members that left and partitions that are gone."""
    of_topic = {topic: draw(st.integers(0, 3)) for topic in _TOPICS}
    members = tuple(
        Subscription(member_id, tuple(draw(st.sets(st.sampled_from(_TOPICS)))))
        for member_id in _MEMBERS[: draw(st.integers(1, 3))]
    )
    before: dict[str, list[tuple[str, int]]] = {}
    for topic, count in of_topic.items():
        for partition in range(count + 1):
            owner = draw(st.sampled_from((*_MEMBERS, "gone", None)))
            if owner is not None:
                before.setdefault(owner, []).append((topic, partition))
    return Group(members, of_topic), from_pairs(before)


@given(_changes())
@settings(max_examples=examples(300), deadline=None)
def test_no_assignment_of_all_possible_ones_is_better(change: tuple[Group, Assignment]) -> None:
    group, before = change
    partitions, takers = [], []
    for topic, count in group.partitions_per_topic.items():
        subscribers = [member.member_id for member in group.members if topic in member.topics]
        for partition in range(count if subscribers else 0):
            partitions.append((topic, partition))
            takers.append(subscribers)
    ids = [member.member_id for member in group.members]

    best: tuple[list[int], int] | None = None
    for owners in product(*takers):
        dealt: dict[str, list[tuple[str, int]]] = {}
        for partition, owner in zip(partitions, owners, strict=True):
            dealt.setdefault(owner, []).append(partition)
        after = from_pairs(dealt)
        loads = sorted(counts(after, ids).values(), reverse=True)
        cost = (loads, moves(before, after))
        best = cost if best is None or cost < best else best

    assert best is not None
    assert smallest_maximum(group) == max(best[0])
    assert optimal_moves(before, group) == best[1]
    assert imbalance_optimal(group) == (imbalance(best[0]) if partitions else None)


def test_a_cycle_gives_no_more_than_its_giver_has_beyond_what_it_had() -> None:
    # a has one more than it had: the next one would be a move, at another cost.
    has = np.array([[4, 0]])
    _shift([(0, 0, 1)], np.array([[3, 0]]), has)
    assert has.tolist() == [[3, 1]]


def test_a_path_gives_half_of_what_its_first_member_has_more_than_its_last() -> None:
    # a, b and c with 6, 5 and 0: three of the first topic go from a to b, three of the second from b to c.
    has = np.array([[6, 0, 0], [0, 5, 0]])
    _shift([(0, 0, 1), (1, 1, 2)], np.zeros_like(has), has)
    assert has.tolist() == [[3, 3, 0], [0, 2, 3]]
