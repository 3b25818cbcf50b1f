"""Partition counts that a leader may have known, and racks that note whether a strategy has read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assignors import CustomStrategies, CustomStrategy, Subscription, strategy_named
from streaming.groups.classic.leader_metadata import WatchedRacks, possible_counts, seen_counts
from streaming.groups.classic.state import ClassicDecision
from tests.groups.build import Life, even, make_observation, make_record, make_topic


@pytest.mark.parametrize(
    "read",
    [
        lambda racks: racks["t"],
        lambda racks: racks.get("unknown"),
        lambda racks: "t" in racks,
        list,
        lambda racks: next(iter(racks)),
        len,
        bool,
        lambda racks: list(racks.items()),
    ],
)
def test_a_strategy_that_reads_anything_of_the_racks_has_looked(read: Callable[[WatchedRacks], object]) -> None:
    racks = WatchedRacks({"t": (("r1",), ("r2",))})
    assert not racks.at
    read(racks)
    assert racks.at


def counts(strategy: str, claimed: int, shown: int, *seen: int) -> list[int]:
    """Possible counts of a topic of which a member claims the first partitions."""
    member = Subscription("a", ("t",), owned=(("t", tuple(range(claimed))),))
    return [found["t"] for found in possible_counts(strategy_named(strategy), [member], {"t": shown}, {"t": seen})]


def test_a_count_is_what_the_assignment_shows_where_leaders_assign_all_that_they_know() -> None:
    assert counts("range", 6, 4, 2, 4, 6) == [4]


def test_partitions_that_a_member_claims_may_be_held_back_or_be_gone() -> None:
    # Held back: the leader knew more, at most as many as are claimed. Gone: it knew fewer, and left the ones beyond
    # them with the member that claims it.
    assert counts("cooperative-sticky", 6, 4, 2, 4, 6, 8) == [4, 2, 6]
    assert counts("cooperative-sticky", 4, 4, 2, 4, 6) == [4, 2]
    assert counts("cooperative-sticky", 3, 4, 2, 4, 6) == [4]
    assert counts("sticky", 6, 4, 2, 4, 6) == [4, 2]
    assert counts("sticky", 4, 4, 2, 3, 4, 6) == [4, 2, 3]
    assert counts("sticky", 3, 4, 2, 3, 4, 6) == [4]


def test_counts_that_rounds_have_seen_come_first() -> None:
    assert counts("cooperative-sticky", 6, 5, 2, 4, 6) == [2, 4, 6, 5]
    assert counts("sticky", 5, 5, 2, 4, 6) == [2, 4, 5]


def test_a_custom_strategy_may_have_left_out_partitions_and_no_count_is_tried_twice() -> None:
    member = Subscription("a", ("t",))
    mine = CustomStrategies((CustomStrategy("mine", f"{__name__}:nobody_calls_it"),)).named("mine")
    assert mine is not None
    found = possible_counts(mine, [member], {"t": 4}, {"t": (2, 4, 6)})
    assert list(found) == [{"t": 4}, {"t": 6}]


@pytest.mark.parametrize(("since", "complete"), [(1_400, True), (1_401, False)])
def test_counts_are_complete_where_rounds_have_shown_them_since_the_beginning_of_the_grace_period(
    since: int, complete: bool
) -> None:
    # (600 s before the decision at 2000.)
    life = Life()
    life.take(make_observation(since, make_topic("x", 3)), make_observation(1_990, make_topic("x", 3)))
    assert life.state is not None
    decision = ClassicDecision(make_record(2_000, even("x", 3, "a")), "rebalance", 1)
    assert seen_counts(life.state, decision, life.config)["x"].complete == complete
