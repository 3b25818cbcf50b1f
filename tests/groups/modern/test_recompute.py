"""Targets recomputed in every order that is possible, how many moves they take, and how even they are."""

from __future__ import annotations

import pytest

from assignors.brokers import ServerGroup, ServerMember, ServerTopic
from streaming.groups.modern.rules import in_every_order
from streaming.groups.rows import ChurnRow, GroupHealthRow
from tests.groups.build import GROUP, Life, make_observation, make_topic
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import (
    FIRST,
    SECOND_MEMBER,
    TOPIC_ID,
    epoch,
    gone,
    metadata,
    observation,
    read,
    stands,
    target,
)
from tests.offsets_log.written import member_metadata, other_key, target_assignment

X, Y, Z = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw", "AAAAAAAAAAAAAAAAAAAABA"
TARGET = ((X, (0,)), (Y, (1,)), (Z, (2,)))


@pytest.mark.parametrize("targets_listed", [True, False])
def test_topics_and_unlisted_targets_are_tried_both_ways_and_no_order_twice(targets_listed: bool) -> None:
    topics = {"x": ServerTopic(X, 3), "y": ServerTopic(Y, 3), "z": ServerTopic(Z, 3)}
    asked = ServerGroup((ServerMember("a", ("x", "y", "z"), TARGET),), topics)
    orders = in_every_order(asked, targets_listed=targets_listed)
    forth, back = ("x", "y", "z"), ("z", "y", "x")
    listed = [(forth, TARGET), (back, TARGET)]
    assert [(member.topics, member.target) for one in orders for member in one.members] == (
        listed + ([] if targets_listed else [(forth, TARGET[::-1]), (back, TARGET[::-1])])
    )


@pytest.mark.parametrize(("partitions", "tried"), [(312, 16), (1_250, 4), (2_500, 2), (2_501, 1)])
def test_the_more_partitions_the_fewer_orders_of_members_that_share_buckets_are_tried(
    partitions: int, tried: int
) -> None:
    # The names Aa and BB have one hash code in Java, so these ten members share five buckets: 32 orders.
    members = tuple(ServerMember(f"{name}{number}", ("x",), ()) for number in range(5) for name in ("Aa", "BB"))
    asked = ServerGroup(members, {"x": ServerTopic(X, partitions)})
    orders = [tuple(member.member_id for member in one.members) for one in in_every_order(asked)]
    assert len(orders) == len(set(orders)) == tried


OTHER = bytes(range(16, 32))
OTHER_ID = "EBESExQVFhcYGRobHB0eHw"


def last_churn(*log: Written, named: bool = True) -> ChurnRow:
    life = Life()
    if named:
        orders = make_topic("orders", 4, topic_id=TOPIC_ID)
        life.take(
            make_observation(9, orders, make_topic("bills", 2, topic_id=OTHER_ID), state=None, group_type="consumer")
        )
    life.take(*read(list(log)))
    return life.rows.rebalance_churn[-1]


def health(*log: Written) -> GroupHealthRow:
    life = Life.after(*read(list(log)))
    orders = make_topic("orders", 4, topic_id=TOPIC_ID)
    rows = life.take(make_observation(99, orders, make_topic("bills", 2, topic_id=OTHER_ID), group_type="consumer"))
    return rows.group_health[-1]


def asking(name: str, *topics: str) -> Written:
    return other_key(5, GROUP, name), member_metadata(topics)


def both(name: str, orders: tuple[int, ...], bills: tuple[int, ...]) -> Written:
    return other_key(7, GROUP, name), target_assignment({TOPIC: orders, OTHER: bills})


# Before: a 0 1, b 2 3.
THIRD = [metadata("c"), epoch(3), target("a", 2), target("b", 0, 3), target("c", 1), stands(3)]
LEAVES = [*gone("b"), epoch(3), target("a", 0, 1, 2, 3), stands(3)]


@pytest.mark.parametrize(
    ("log", "moved", "least"),
    [
        pytest.param([], 2, 2, id="the members that are there now"),
        # Moving one to c is enough; 0, 1 and 2 moved.
        pytest.param(THIRD, 3, 1, id="moves beyond the least are what stickiness would have saved"),
        pytest.param(LEAVES, 2, 2, id="a member that left gives all it had and no less can move"),
    ],
)
def test_the_least_moves_are_those_that_evenness_needs(log: list[Written], moved: int, least: int) -> None:
    row = last_churn(*FIRST, *SECOND_MEMBER, *log, named=False)
    assert (row.partitions_moved, row.partitions_moved_optimal) == (moved, least)


def test_with_different_subscriptions_the_least_needs_the_names_of_topics() -> None:
    log = [asking("a", "bills", "orders"), epoch(1), both("a", (0, 1, 2, 3), (0, 1)), stands(1)]
    log += [asking("b", "bills"), epoch(2), both("b", (), (0, 1)), target("a", 0, 1, 2, 3), stands(2)]
    # b may only have bills: its two move, and a is left with four. Nothing more even is possible.
    for named, least in ((True, 2), (False, None)):
        row = last_churn(*log, named=named)
        assert (row.partitions_moved, row.partitions_moved_optimal) == (2, least)


@pytest.mark.parametrize(
    "log",
    [
        FIRST[3:] + SECOND_MEMBER,  # first seen in the middle of its life
        FIRST + SECOND_MEMBER[:4] + [epoch(3), stands(2)],  # members have changed since the target was computed
        [*FIRST, (other_key(5, GROUP, "b"), member_metadata([], regex="o.*")), *SECOND_MEMBER[1:]],  # not resolved
    ],
)
def test_where_what_it_takes_is_not_known_the_least_is_null(log: list[Written]) -> None:
    assert last_churn(*log).partitions_moved_optimal is None


def test_the_balance_of_a_target_stands_beside_the_best_that_could_be() -> None:
    row = health(*FIRST, *SECOND_MEMBER)
    assert (row.imbalance, row.imbalance_optimal) == (0.0, 0.0)
    row = health(*FIRST, metadata("b"), epoch(2), target("a", 0, 1, 2), target("b", 3), stands(2))
    assert (row.imbalance, row.imbalance_optimal) == (0.5, 0.0)


def test_the_balance_is_of_the_newest_target_and_goes_with_the_group() -> None:
    life = Life.after(*read(FIRST + SECOND_MEMBER), observation(21))
    rows = life.take(*read([*gone("a", "b"), epoch(3)], 21), observation(30))
    assert (rows.group_health[-1].imbalance, rows.group_health[-1].imbalance_optimal) == (None, None)
