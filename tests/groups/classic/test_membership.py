"""Members of classic groups: their rows, what stands when nothing moves, and what a leader knew of their topics."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assignors import CustomStrategies, CustomStrategy, Subscription, strategy_named
from streaming.groups.classic.leader_metadata import WatchedRacks, possible_counts, seen_counts
from streaming.groups.classic.membership import _cached_subscription, leader_counts, subscription_of
from streaming.groups.classic.state import ClassicDecision
from streaming.records import GroupInput
from tests.groups.build import (
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)


def members_of(life: Life) -> list[tuple[str, int, bool, int | None]]:
    return [(row.member_id, row.decision, row.ended, row.partition_count) for row in life.rows.members]


def test_every_member_of_a_decision_has_a_row() -> None:
    life = Life.after(make_record(5, (make_member("a", ("x", "y"), {"x": (0, 2)}, rack="r1", group_instance_id="i"),)))
    (row,) = life.rows.members
    assert (row.member_id, row.client_id, row.client_host, row.rack) == ("a", "consumer-1", "/127.0.0.1", "r1")
    assert (row.group_instance_id, row.leader, row.subscription) == ("i", True, ("x", "y"))
    assert (row.partition_count, [tuple(t.partitions) for t in row.partitions or ()]) == (2, [(0, 2)])
    assert (row.ended, row.incarnation, row.generation) == (False, 5, 1)


def test_a_member_has_its_timeouts_and_none_that_its_record_does_not_tell() -> None:
    life = Life()
    told = make_member("a", ("x",), {"x": (0,)}, session_timeout=10_000, rebalance_timeout=60_000)
    untold = make_member("b", ("x",), {}, session_timeout=9_000, rebalance_timeout=-1)
    none = make_member("c", ("x",), {}, session_timeout=0, rebalance_timeout=0)
    life.take(make_record(5, (told, untold, none)))
    found = [(row.member_id, row.session_timeout_ms, row.rebalance_timeout_ms) for row in life.rows.members]
    assert found == [("a", 10_000, 60_000), ("b", 9_000, None), ("c", 0, 0)]


def test_a_member_that_is_not_in_the_next_decision_is_closed_by_it() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_record(9, even("x", 2, "b"), generation=2))
    assert members_of(life) == [("a", 5, False, 1), ("b", 5, False, 1), ("a", 9, True, 0), ("b", 9, False, 2)]


def test_members_of_an_empty_group_are_closed_once() -> None:
    life = Life.after(
        make_record(5, even("x", 2, "a")), make_record(9, generation=2), make_observation(10), make_tombstone(12)
    )
    life.take(make_observation(20, gone="deleted"))
    assert members_of(life) == [("a", 5, False, 2), ("a", 9, True, 0)]


def test_a_tombstone_closes_the_members() -> None:
    life = Life.after(
        make_record(5, even("x", 2, "a")),
        make_tombstone(12),
        make_observation(20),
        make_observation(30, gone="deleted"),
    )
    assert members_of(life) == [("a", 5, False, 2), ("a", 12, True, 0)]


def test_members_that_a_tombstone_has_closed_are_not_closed_again_by_the_next_group_of_the_name() -> None:
    life = Life.after(make_record(5, even("x", 2, "a")), make_tombstone(12), make_record(15, even("x", 2, "b")))
    assert members_of(life) == [("a", 5, False, 2), ("a", 12, True, 0), ("b", 15, False, 2)]


def test_a_group_that_is_not_listed_any_more_closes_its_members() -> None:
    life = Life.after(
        make_record(5, even("x", 2, "a")),
        make_observation(10, make_topic("x", 2)),
        make_observation(30, gone="filtered"),
    )
    assert members_of(life) == [("a", 5, False, 2), ("a", 30, True, 0)]


def test_what_cannot_be_decoded_of_a_member_is_null() -> None:
    life = Life.after(make_record(5, (make_member("a", None, assigned=None, undecodable="subscription: cut"),)))
    (row,) = life.rows.members
    assert (row.subscription, row.partition_count, row.partitions) == (None, None, None)
    assert row.undecodable == "subscription: cut"


def test_a_topic_of_which_nothing_is_assigned_may_have_no_partition() -> None:
    record = make_record(5, (make_member("a", ("x", "y"), {"x": (0, 3), "not subscribed": ()}),))
    assert leader_counts(record) == {"x": 4, "y": 0, "not subscribed": 0}


def test_members_with_large_subscriptions_are_not_kept_for_the_life_of_the_process() -> None:
    _cached_subscription.cache_clear()
    for length, kept in ((100, 1), (1_000_000, 0)):
        member = make_member("a", ("x",), {}, user_data=bytes(length))
        assert subscription_of(member) == subscription_of(member)
        assert subscription_of(member).user_data == bytes(length)
        assert _cached_subscription.cache_info().currsize == kept
        _cached_subscription.cache_clear()


def standing(*inputs: GroupInput) -> tuple[str | None, str | None, int | None]:
    row = Life().take(*inputs).group_health[-1]
    return row.verdict, row.verdict_reason, row.drifted_count


def test_members_without_a_record_wait_for_one() -> None:
    reason = "the group has members, but no record of its membership has been read yet"
    assert standing(make_observation(10, make_topic("x", 1), state="Stable")) == ("pending", reason, 0)


def test_a_group_of_which_the_log_has_nothing_waits_for_something() -> None:
    reason = "the log has neither a membership nor a committed offset of the group"
    assert standing(make_observation(10, state="Empty")) == ("pending", reason, 0)


def test_offsets_without_a_membership_have_no_verdict() -> None:
    reason = "no membership: offsets are committed without joining the group (assign and commit)"
    inputs = make_commit(5, 7, topic="x"), make_observation(10, make_topic("x", 1), state="Empty")
    assert standing(*inputs) == ("not_applicable", reason, 0)


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
    # 600 s before the decision at 2000.
    life = Life.after(make_observation(since, make_topic("x", 3)), make_observation(1_990, make_topic("x", 3)))
    assert life.state is not None
    decision = ClassicDecision(make_record(2_000, even("x", 3, "a")), "rebalance", 1)
    assert seen_counts(life.state, decision, life.config)["x"].complete == complete
