"""Balance and moves: hand-written values, and small groups compared with every possible assignment."""

from __future__ import annotations

from itertools import product

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


def group(topics: dict[str, str], /, **counts: int) -> Group:
    """Members with topics of one letter each."""
    return Group(tuple(Subscription(member, tuple(of)) for member, of in topics.items()), counts)


def test_balance_tells_the_emptiest_and_the_fullest_member() -> None:
    told = balance([4, 2, 0])

    assert told is not None
    assert (told.least, told.most, told.imbalance) == (0, 4, pytest.approx(1.0))
    assert balance([]) is None


def test_a_members_load_is_the_sum_over_its_partitions() -> None:
    assignment = from_pairs({"a": [("t", 0), ("t", 2), ("u", 0)], "b": [("t", 1)]})

    # The load of u, and of a partition beyond the list, is unknown.
    assert loads(assignment, {"t": [1, 2]}, ("a", "b", "c")) == {"a": 1, "b": 2, "c": 0}


@pytest.mark.parametrize(("sizes", "told"), [([4, 2, 0], 1.0), ([3, 3], 0.0), ([0, 0], None), ([], None)])
def test_imbalance_is_the_fullest_member_over_the_mean_minus_one(sizes: list[int], told: float | None) -> None:
    assert imbalance(sizes) == (None if told is None else pytest.approx(told))


LEAST_IMBALANCE = {
    "three partitions on five members": (alike(5, 3), 2 / 3),
    # b must have all ten of u; a takes both of t.
    "a topic of one member alone": (group({"a": "t", "b": "tu"}, t=2, u=10), 10 / 6 - 1),
    # Eleven of t and u for a and b: one has six.
    "a bottleneck of two topics": (group({"a": "tuv", "b": "tu", "c": "v"}, t=5, u=6, v=1), 6 / 4 - 1),
    "a member without a topic counts in the mean": (group({"a": "t", "b": ""}, t=2), 1.0),
    "nothing to assign": (group({"a": "g"}), None),
}


@pytest.mark.parametrize(("of", "told"), LEAST_IMBALANCE.values(), ids=LEAST_IMBALANCE)
def test_the_least_imbalance(of: Group, told: float | None) -> None:
    assert imbalance_optimal(of) == (None if told is None else pytest.approx(told))


BEFORE: Assignment = {"a": {"t": (0, 1)}, "b": {"t": (2,), "u": (0,)}}
TWICE: Assignment = {"a": {"t": (0,)}, "b": {"t": (0,)}}
MOVES: dict[str, tuple[Assignment, Assignment, int]] = {
    "a changed owner": (BEFORE, {"a": {"t": (0,)}, "b": {"t": (1, 2), "u": (0,)}}, 1),
    "the same assignment": (BEFORE, {"b": {"u": [0], "t": [2]}, "a": {"t": range(2)}}, 0),
    "an owner that left": (BEFORE, {"b": {"t": (0, 1, 2), "u": (0,)}}, 2),
    "a first owner and a lost owner": (BEFORE, {"a": {"t": (0, 1), "v": (0,)}, "b": {"t": (2,)}}, 0),
    "one of two owners stays": (TWICE, {"b": {"t": (0,)}}, 0),
    "none of two owners stays": (TWICE, {"c": {"t": (0,)}}, 1),
}


@pytest.mark.parametrize(("before", "after", "told"), MOVES.values(), ids=MOVES)
def test_moves_are_partitions_whose_owner_changed(before: Assignment, after: Assignment, told: int) -> None:
    assert moves(before, after) == told


OF_UNLIKE = group({"a": "t", "b": "tu"}, t=4, u=4)
LEAST_MOVES: dict[str, tuple[Assignment, Group, int | None]] = {
    "a member that joins takes its share and no more": (assign("range", alike(2, 6)), alike(3, 6), 2),
    "a member that leaves gives what it had": (assign("range", alike(3, 6)), alike(2, 6), 2),
    "the larger shares stay where they are": ({"m0": {"t": (0,)}, "m1": {"t": (1, 2)}}, alike(2, 3), 0),
    # Two, two, two and zero: the maximum could not be smaller, but the new member could have one.
    "no two members may differ by more than one": (
        {f"m{i}": {"t": (2 * i, 2 * i + 1)} for i in range(3)}, alike(4, 6), 1,
    ),
    # Two, two and none of seven: one of them may get three, and nothing moves for it.
    "who has the smaller share keeps that and no more": (
        {"m0": {"t": (0, 1)}, "m1": {"t": (2, 3)}}, alike(3, 7), 0,
    ),
    "new partitions": (assign("range", alike(2, 2)), alike(2, 10), 0),
    "partitions of a topic that is gone": ({"m0": {"gone": (0, 1, 2)}, "m1": {"t": (0,)}}, alike(2, 2), 0),
    "partitions beyond the count": ({"m0": {"t": (0, 2)}}, alike(2, 2), 0),
    "different subscriptions": ({"a": {"t": (0,)}, "b": {"t": (1, 2, 3), "u": (0, 1, 2, 3)}}, OF_UNLIKE, 3),
    # b keeps t-0, c has v-0, and two of the others one of u each.
    "a partition returns from a member with nothing else to the one that had it": (
        {"b": {"t": (0,)}},
        group({"a": "tu", "b": "tv", "c": "tuv", "d": "t", "e": "u", "f": "u"}, t=1, u=2, v=1),
        0,
    ),
    # b gives one of its seven to a, which gets the new t-0 and u-4 as well, and one to c.
    "a partition moves to each of two members with fewer": (
        {"a": {"v": (0,)}, "b": {"u": (0, 1, 2, 3), "v": (1, 2, 3)}, "c": {"v": (4, 5, 6)}},
        group({"a": "tuv", "b": "uv", "c": "v"}, t=1, u=5, v=7),
        2,
    ),
    "a partition of two owners gives no figure": ({"m0": {"t": (0,)}, "m1": {"t": (0,)}}, alike(2, 2), None),
    "as many partitions as the limit": (
        {"a": {"t": range(MOST_PARTITIONS - 1)}, "b": {"u": (0,)}},
        group({"a": "t", "b": "u"}, t=MOST_PARTITIONS - 1, u=1),
        0,
    ),
    "one partition more": (
        {"a": {"t": range(MOST_PARTITIONS - 1)}, "b": {"u": (0,)}},
        group({"a": "t", "b": "u"}, t=MOST_PARTITIONS - 1, u=2),
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "of", "told"), LEAST_MOVES.values(), ids=LEAST_MOVES)
def test_the_fewest_moves(before: Assignment, of: Group, told: int | None) -> None:
    with at_most(10_000):
        assert optimal_moves(before, of) == told


@pytest.mark.parametrize(("idle", "told"), [(1, 1), (30, None)])
def test_too_large_a_search_gives_no_figure(idle: int, told: int | None) -> None:
    # With a million pairs of a topic and a member it may take 40 rounds: enough for one move and not for thirty.
    topics = tuple(f"t{i}" for i in range(1_000))
    members = tuple(Subscription(f"m{i}", topics[:-1] if i % 2 else topics) for i in range(1_000))
    before = {f"m{i}": {topics[i]: (0,)} for i in range(1_000 - idle)}
    before["m0"] |= dict.fromkeys(topics[1_000 - idle :], (0,))

    assert optimal_moves(before, Group(members, dict.fromkeys(topics, 1))) == told


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
