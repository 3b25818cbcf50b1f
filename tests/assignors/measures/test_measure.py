"""Balance and moves: hand-written values, and small groups compared with every possible assignment."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import (
    BEYOND_COUNT,
    DOUBLY_ASSIGNED,
    NOT_SUBSCRIBED,
    Assignment,
    Group,
    Subscription,
    Violation,
    assign,
    at_most,
    counts,
    from_pairs,
    imbalance,
    imbalance_optimal,
    load_imbalance_optimal,
    loads,
    moves,
    optimal_moves,
    violations,
)
from assignors.measures.optimal_imbalance import smallest_load_bounds, smallest_maximum
from assignors.measures.optimal_moves import MOST_PARTITIONS, _shift
from tests.examples import examples


def alike(members: int, partitions: int) -> Group:
    return Group(tuple(Subscription(f"m{i}", ("t",)) for i in range(members)), {"t": partitions})


def group(topics: dict[str, str], /, **counts: int) -> Group:
    """Members with topics of one letter each."""
    return Group(tuple(Subscription(member, tuple(of)) for member, of in topics.items()), counts)


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


@pytest.mark.nightly
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


SUBSCRIBED = {"a": ("t",), "b": ("t", "u", "v", "w")}
COUNTS = {"t": 3, "u": 1, "w": 0}


# An assignment, and what it violates: kind, topic, partition and member.
VIOLATED: dict[str, tuple[Assignment, list[tuple[str, str, int, str]]]] = {
    "a sound one violates nothing": ({"a": {"t": (0, 1)}, "b": {"t": (2,), "u": range(1)}}, []),
    "a partition of several members is doubly assigned by each after the first": (
        {"a": {"t": (0, 1)}, "b": {"t": (1, 2)}, "c": {"t": (1,)}},
        [(DOUBLY_ASSIGNED, "t", 1, "b"), (DOUBLY_ASSIGNED, "t", 1, "c")],
    ),
    "so is one that stands twice in one list": ({"a": {"t": (2, 2)}}, [(DOUBLY_ASSIGNED, "t", 2, "a")]),
    "a topic that was not asked for is not subscribed": ({"a": {"u": (0,)}}, [(NOT_SUBSCRIBED, "u", 0, "a")]),
    "a partition that does not exist is beyond the count": (
        {"a": {"t": (0, 2, 3, -1)}},
        [(BEYOND_COUNT, "t", 3, "a"), (BEYOND_COUNT, "t", -1, "a")],
    ),
    "a topic that does not exist has none": ({"b": {"w": (0,)}}, [(BEYOND_COUNT, "w", 0, "b")]),
    "what is not known is not judged": ({"stranger": {"v": (7,)}, "b": {"v": (9,)}}, []),
    "one partition can have several": (
        {"b": {"u": (5,)}, "a": {"u": (5,)}},
        [
            (BEYOND_COUNT, "u", 5, "b"),
            (NOT_SUBSCRIBED, "u", 5, "a"),
            (BEYOND_COUNT, "u", 5, "a"),
            (DOUBLY_ASSIGNED, "u", 5, "a"),
        ],
    ),
}


@pytest.mark.parametrize("case", VIOLATED)
def test_what_an_assignment_violates_is_named(case: str) -> None:
    assignment, expected = VIOLATED[case]
    assert violations(assignment, SUBSCRIBED, COUNTS) == tuple(Violation(*one) for one in expected)


def group_of(load: Mapping[str, Sequence[float]], *topics_of_members: Sequence[str]) -> Group:
    members = tuple(Subscription(f"m{at}", tuple(topics)) for at, topics in enumerate(topics_of_members))
    return Group(members, {topic: len(of_topic) for topic, of_topic in load.items()})


def smallest_by_trying(load: Mapping[str, Sequence[float]], members: Sequence[Sequence[str]]) -> float:
    """The smallest maximum over all assignments."""
    jobs = [
        (value, [at for at, topics in enumerate(members) if topic in topics]) for topic in load for value in load[topic]
    ]
    jobs = [(value, takers) for value, takers in jobs if takers and value > 0]
    least = math.inf
    for owners in itertools.product(*(takers for _, takers in jobs)):
        of_member = [0.0] * len(members)
        for (value, _), owner in zip(jobs, owners, strict=True):
            of_member[owner] += value
        least = min(least, max(of_member, default=0.0))
    return least


@pytest.mark.parametrize(
    ("load", "members", "bounds"),
    [
        ([6, 6, 6, 6], 2, (12, 12)),
        ([10, 1, 1], 2, (10, 10)),  # the hot one is the maximum whatever happens
        ([4, 4, 4], 2, (8, 8)),  # two of three must come together
        ([5, 4, 3, 3, 3], 2, (9, 10)),  # 5 + 4 and 3 + 3 + 3 is missed by the longest first
        ([7], 3, (7, 7)),
        ([0, 0], 2, (0, 0)),
    ],
)
def test_bounds_by_hand(load: list[int], members: int, bounds: tuple[int, int]) -> None:
    assert smallest_load_bounds(group_of({"x": load}, *[["x"]] * members), {"x": load}) == bounds


def test_partitions_that_only_some_members_may_have_stay_with_them() -> None:
    load = {"x": [10, 10], "y": [1, 1]}
    assert smallest_load_bounds(group_of(load, ["x"], ["y"]), load) == (20, 20)
    assert smallest_load_bounds(group_of(load, ["x"], ["x", "y"]), load) == (11, 12)


def test_a_partition_without_load_changes_neither_bound() -> None:
    # Two members may have x, two y, and all three of these z, whose members' mean would be 4.
    load = {"x": [1] * 6, "y": [1] * 6}
    group = group_of({**load, "z": [0]}, "xz", "xyz", "yz", "")
    assert smallest_load_bounds(group, load) == smallest_load_bounds(group, {**load, "z": [0]}) == (3, 5)


def test_the_imbalance_is_relative_to_the_mean_of_all_members() -> None:
    load = {"x": [10, 1, 1]}
    least, most = load_imbalance_optimal(group_of(load, ["x"], ["x"]), load) or (None, None)
    assert least == most == pytest.approx(10 / 6 - 1)


def test_without_load_or_subscribers_there_is_no_imbalance() -> None:
    assert load_imbalance_optimal(group_of({"x": [0, 0]}, ["x"]), {"x": [0, 0]}) is None
    assert load_imbalance_optimal(group_of({"x": [3, 3]}, ["y"]), {"x": [3, 3]}) is None
    assert load_imbalance_optimal(group_of({"x": [3, 3]}), {"x": [3, 3]}) is None
    assert load_imbalance_optimal(group_of({"x": [3, 3]}, ["x"]), {}) is None


def test_what_takes_too_much_work_has_no_answer() -> None:
    load = {"x": [1.0] * 100}
    with at_most(50):
        assert load_imbalance_optimal(group_of(load, ["x"], ["x"]), load) is None


LOADS = st.dictionaries(
    st.sampled_from("xyz"), st.lists(st.integers(0, 12), min_size=1, max_size=3), min_size=1, max_size=3
)
SUBSCRIPTIONS = st.lists(st.sets(st.sampled_from("xyz")).map(sorted), min_size=1, max_size=3)


@settings(deadline=None, max_examples=examples(300))
@given(LOADS, SUBSCRIPTIONS)
def test_the_least_maximum_of_all_assignments_is_within_the_bounds(
    load: dict[str, list[int]], members: list[list[str]]
) -> None:
    least, most = smallest_load_bounds(group_of(load, *members), load)
    true = smallest_by_trying(load, members)
    assert least <= true <= most
    # Graham's bound for equal SUBSCRIPTIONS; it says that the bounds are of use.
    if all(topics == ["x", "y", "z"] for topics in members):
        assert most <= (4 / 3 - 1 / (3 * len(members))) * true


@settings(deadline=None, max_examples=examples(100))
@given(LOADS, st.integers(1, 4))
def test_bounds_that_are_equal_are_exact_and_most_are(load: dict[str, list[int]], members: int) -> None:
    listed = [["x", "y", "z"]] * members
    least, most = smallest_load_bounds(group_of(load, *listed), load)
    if least == most:
        assert smallest_by_trying(load, listed) == pytest.approx(least)
