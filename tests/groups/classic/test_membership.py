"""The members of a decision, each with a row, and when their rows end."""

from __future__ import annotations

from streaming.groups.classic.membership import _cached_subscription, leader_counts, subscription_of
from tests.groups.build import (
    Life,
    even,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)


def members_of(life: Life) -> list[tuple[str, int, bool, int | None]]:
    return [(row.member_id, row.decision, row.ended, row.partition_count) for row in life.rows.members]


def test_every_member_of_a_decision_has_a_row() -> None:
    life = Life()
    life.take(make_record(5, (make_member("a", ("x", "y"), {"x": (0, 2)}, rack="r1", group_instance_id="i"),)))
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
    life = Life()
    life.take(make_record(5, even("x", 2, "a", "b")), make_record(9, even("x", 2, "b"), generation=2))
    assert members_of(life) == [("a", 5, False, 1), ("b", 5, False, 1), ("a", 9, True, 0), ("b", 9, False, 2)]


def test_members_of_an_empty_group_are_closed_once() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a")), make_record(9, generation=2), make_observation(10), make_tombstone(12))
    life.take(make_observation(20, gone="deleted"))
    assert members_of(life) == [("a", 5, False, 2), ("a", 9, True, 0)]


def test_a_tombstone_closes_the_members() -> None:
    life = Life()
    life.take(
        make_record(5, even("x", 2, "a")),
        make_tombstone(12),
        make_observation(20),
        make_observation(30, gone="deleted"),
    )
    assert members_of(life) == [("a", 5, False, 2), ("a", 12, True, 0)]


def test_members_that_a_tombstone_has_closed_are_not_closed_again_by_the_next_group_of_the_name() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a")), make_tombstone(12), make_record(15, even("x", 2, "b")))
    assert members_of(life) == [("a", 5, False, 2), ("a", 12, True, 0), ("b", 15, False, 2)]


def test_a_group_that_is_not_listed_any_more_closes_its_members() -> None:
    life = Life()
    life.take(
        make_record(5, even("x", 2, "a")),
        make_observation(10, make_topic("x", 2)),
        make_observation(30, gone="filtered"),
    )
    assert members_of(life) == [("a", 5, False, 2), ("a", 30, True, 0)]


def test_what_cannot_be_decoded_of_a_member_is_null() -> None:
    life = Life()
    life.take(make_record(5, (make_member("a", None, assigned=None, undecodable="subscription: cut"),)))
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
