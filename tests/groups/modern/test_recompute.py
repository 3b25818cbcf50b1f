"""The orders in which a coordinator's hash maps may hold what a decision was computed from."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from assignors.brokers import ServerGroup, ServerMember, ServerTopic
from streaming.groups.modern.recompute import in_every_order, orders_of

X, Y, Z = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw", "AAAAAAAAAAAAAAAAAAAABA"
TARGET = ((X, (0,)), (Y, (1,)), (Z, (2,)))
ASKED = ServerGroup(
    (ServerMember("a", ("x", "y", "z"), TARGET),),
    {"x": ServerTopic(X, 3), "y": ServerTopic(Y, 3), "z": ServerTopic(Z, 3)},
)


@pytest.mark.parametrize("targets_listed", [True, False])
def test_topics_and_unlisted_targets_are_tried_both_ways_and_no_order_twice(targets_listed: bool) -> None:
    found = [
        (member.topics, member.target)
        for asked in in_every_order(ASKED, targets_listed=targets_listed)
        for member in asked.members
    ]
    forth, back = ("x", "y", "z"), ("z", "y", "x")
    listed = [(forth, TARGET), (back, TARGET)]
    assert found == listed + ([] if targets_listed else [(forth, TARGET[::-1]), (back, TARGET[::-1])])


def test_members_that_share_buckets_are_tried_in_sixteen_orders_at_most() -> None:
    # The names Aa and BB have one hash code in Java, so these ten members share five buckets: 32 orders.
    members = tuple(ServerMember(f"{name}{number}", ("x",), ()) for number in range(5) for name in ("Aa", "BB"))
    asked = ServerGroup(members, {"x": ServerTopic(X, 3)})
    orders = [tuple(member.member_id for member in found.members) for found in in_every_order(asked)]
    assert len(orders) == len(set(orders)) == 16


@pytest.mark.parametrize(("partitions", "orders"), [(312, 16), (1_250, 4), (2_500, 2), (2_501, 1)])
def test_the_more_partitions_the_fewer_orders_are_tried(partitions: int, orders: int) -> None:
    members = tuple(ServerMember(f"{name}{number}", ("x",), ()) for number in range(5) for name in ("Aa", "BB"))
    assert len(list(in_every_order(ServerGroup(members, {"x": ServerTopic(X, partitions)})))) == orders


@pytest.mark.parametrize(("log_partition", "listed"), [(-1, False), (0, True), (7, True)])
def test_only_the_log_lists_targets_in_the_order_of_their_records(log_partition: int, listed: bool) -> None:
    decision = SimpleNamespace(log_partition=log_partition)
    found = list(orders_of(decision, ASKED))  # type: ignore[arg-type]
    assert found == list(in_every_order(ASKED, targets_listed=listed))
