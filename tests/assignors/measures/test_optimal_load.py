"""The least load of the most loaded member, against every assignment that there is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import Group, Subscription, at_most, load_imbalance_optimal
from assignors.measures.optimal_load import smallest_load_bounds
from tests.examples import examples


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


loads = st.dictionaries(
    st.sampled_from("xyz"), st.lists(st.integers(0, 12), min_size=1, max_size=3), min_size=1, max_size=3
)
subscriptions = st.lists(st.sets(st.sampled_from("xyz")).map(sorted), min_size=1, max_size=3)


@settings(deadline=None, max_examples=examples(300))
@given(loads, subscriptions)
def test_the_least_maximum_of_all_assignments_is_within_the_bounds(
    load: dict[str, list[int]], members: list[list[str]]
) -> None:
    least, most = smallest_load_bounds(group_of(load, *members), load)
    true = smallest_by_trying(load, members)
    assert least <= true <= most
    # Graham's bound for equal subscriptions; it says that the bounds are of use.
    if all(topics == ["x", "y", "z"] for topics in members):
        assert most <= (4 / 3 - 1 / (3 * len(members))) * true


@settings(deadline=None, max_examples=examples(100))
@given(loads, st.integers(1, 4))
def test_bounds_that_are_equal_are_exact_and_most_are(load: dict[str, list[int]], members: int) -> None:
    listed = [["x", "y", "z"]] * members
    least, most = smallest_load_bounds(group_of(load, *listed), load)
    if least == most:
        assert smallest_by_trying(load, listed) == pytest.approx(least)
