"""Members of classic groups: their rows, what stands when nothing moves, and what a leader knew of their topics."""

from __future__ import annotations

import pytest

from assignors import CustomStrategies, CustomStrategy, Subscription
from streaming.groups.classic.leader_metadata import possible_counts
from streaming.groups.classic.membership import leader_counts
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


FIRST = make_record(5, even("x", 2, "a"))


@pytest.mark.parametrize(
    ("inputs", "rows"),
    [
        pytest.param(
            [make_record(5, even("x", 2, "a", "b")), make_record(9, even("x", 2, "b"), generation=2)],
            [("a", 5, False, 1), ("b", 5, False, 1), ("a", 9, True, 0), ("b", 9, False, 2)],
            id="by the next decision, if they are not in it",
        ),
        pytest.param(
            [
                *(FIRST, make_record(9, generation=2), make_observation(10), make_tombstone(12)),
                make_observation(20, gone="deleted"),
            ],
            [("a", 5, False, 2), ("a", 9, True, 0)],
            id="once, of an empty group",
        ),
        pytest.param(
            [FIRST, make_tombstone(12), make_observation(20), make_observation(30, gone="deleted")],
            [("a", 5, False, 2), ("a", 12, True, 0)],
            id="by a tombstone",
        ),
        pytest.param(
            [FIRST, make_tombstone(12), make_record(15, even("x", 2, "b"))],
            [("a", 5, False, 2), ("a", 12, True, 0), ("b", 15, False, 2)],
            id="and not again by the next group of the name",
        ),
        pytest.param(
            [FIRST, make_observation(10, make_topic("x", 2)), make_observation(30, gone="filtered")],
            [("a", 5, False, 2), ("a", 30, True, 0)],
            id="of a group that is not listed any more",
        ),
    ],
)
def test_members_are_closed(inputs: list[GroupInput], rows: list[tuple[str, int, bool, int | None]]) -> None:
    life = Life.after(*inputs)
    assert [(row.member_id, row.decision, row.ended, row.partition_count) for row in life.rows.members] == rows


def test_what_cannot_be_decoded_of_a_member_is_null() -> None:
    life = Life.after(make_record(5, (make_member("a", None, assigned=None, undecodable="subscription: cut"),)))
    (row,) = life.rows.members
    assert (row.subscription, row.partition_count, row.partitions) == (None, None, None)
    assert row.undecodable == "subscription: cut"


def test_a_topic_of_which_nothing_is_assigned_may_have_no_partition() -> None:
    record = make_record(5, (make_member("a", ("x", "y"), {"x": (0, 3), "not subscribed": ()}),))
    assert leader_counts(record) == {"x": 4, "y": 0, "not subscribed": 0}


@pytest.mark.parametrize(
    ("inputs", "verdict", "reason"),
    [
        (
            [make_observation(10, make_topic("x", 1), state="Stable")],
            "pending",
            "the group has members, but their assignment has not been seen yet",
        ),
        (
            [make_observation(10, state="Empty")],
            "pending",
            "neither members nor committed offsets of the group have been seen",
        ),
        (
            [make_commit(5, 7, topic="x"), make_observation(10, make_topic("x", 1), state="Empty")],
            "not_applicable",
            "no membership: offsets are committed without joining the group (assign and commit)",
        ),
    ],
)
def test_a_group_without_a_membership_says_what_it_lacks(inputs: list[GroupInput], verdict: str, reason: str) -> None:
    row = Life().take(*inputs).group_health[-1]
    assert (row.verdict, row.verdict_reason, row.drifted_count) == (verdict, reason, 0)


def test_a_custom_strategy_may_have_left_out_partitions_and_no_count_is_tried_twice() -> None:
    mine = CustomStrategies((CustomStrategy("mine", f"{__name__}:nobody_calls_it"),)).named("mine")
    assert mine is not None
    found = possible_counts(mine, [Subscription("a", ("t",))], {"t": 4}, {"t": (2, 4, 6)})
    assert list(found) == [{"t": 4}, {"t": 6}]
