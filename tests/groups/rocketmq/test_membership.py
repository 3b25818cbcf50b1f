"""Members as rows, and queues as the partition numbers that the measures need."""

from __future__ import annotations

import pytest

from streaming.groups.rocketmq.membership import Numbered, balance_of, held_queues
from streaming.groups.rows import TopicAssignment
from streaming.records import Member
from tests.groups.rocketmq.world import RETRY, TOPIC, A, B, Client, World


@pytest.mark.parametrize(
    ("addresses", "hosts"),
    [
        (["10.0.0.1:1", "10.0.0.1:2"], "10.0.0.1"),
        (["10.0.0.2:1", "10.0.0.1:2"], "10.0.0.1, 10.0.0.2"),
        ([f"10.0.0.{n}:1" for n in (3, 2, 1)], "10.0.0.1, 10.0.0.2, 10.0.0.3"),
        ([f"10.0.0.{n}:1" for n in (3, 2, 1, 4)], "10.0.0.1, 10.0.0.2, 10.0.0.3 and 1 more"),
        (["[::1]:40000"], "[::1]"),
    ],
)
def test_a_member_has_the_first_hosts_of_its_connections(addresses: list[str], hosts: str) -> None:
    world = World()
    for listed in world.lists.values():
        assert listed is not None
        listed.extend([A] * len(addresses))
    world.clients[A] = Client(A)
    world.addresses[A] = addresses
    [row] = world.round(2).members
    assert row.client_host == hosts


def test_a_member_s_row_has_its_topics_and_its_queues_with_their_brokers() -> None:
    world = World()
    world.routes["n1"][RETRY] = {"broker-a": 1}
    world.join(Client(A, topics=(TOPIC, RETRY, "nowhere")))
    world.rebalance()
    [row] = world.round(2).members
    assert row.subscription == (RETRY, "nowhere", TOPIC)
    assert row.partition_count == 9
    assert row.partitions == (
        TopicAssignment(RETRY, (0,), "broker-a"),
        TopicAssignment(TOPIC, (0, 1, 2, 3), "broker-a"),
        TopicAssignment(TOPIC, (0, 1, 2, 3), "broker-b"),
    )
    assert (row.undecodable, row.ended, row.client_id, row.source) == (None, False, A, "rocketmq")


def test_of_a_member_that_has_never_answered_nothing_is_known() -> None:
    world = World()
    world.join(Client(A, answer="timeout"))
    [row] = world.round(2).members
    assert (row.subscription, row.partition_count, row.partitions) == (None, None, None)
    assert row.undecodable == "it does not tell which queues it holds"
    assert (world.health.imbalance, world.health.imbalance_optimal) == (None, None)


def member(name: str, *held: tuple[str, tuple[int, ...]], topics: tuple[str, ...] = ("t",)) -> Member:
    return Member(name, None, name, "", -1, -1, None, topics, (), None, None, None, held)


UNKNOWN = Member(B, None, B, "", -1, -1, None, None, (), None, None, None, None)


def test_queues_are_numbered_in_their_order_and_those_that_are_in_no_route_come_behind() -> None:
    members = [member(A, ("t\0@\0b", (0, 5))), member(B, ("t\0@\0a", (1,)), ("u\0@\0a", (0,)))]
    held = {A: {"t\0@\0b": (0, 5)}, B: {"t\0@\0a": (1,), "u\0@\0a": (0,)}}
    numbered = Numbered(members, {"t": {"b": 1, "a": 2}})
    assert numbered.order == {"t": [("a", 0), ("a", 1), ("b", 0)]}
    assert numbered.group.partitions_per_topic == {"t": 3}
    assert numbered.numbered(held) == {A: {"t": (2, 3)}, B: {"t": (1,), "u": (0,)}}


def test_what_members_hold_is_known_of_all_or_of_none() -> None:
    assert held_queues([member(A, ("t\0@\0a", (1,)))]) == {A: {"t\0@\0a": (1,)}}
    assert held_queues([member(A, ("t\0@\0a", (1,))), UNKNOWN]) is None
    assert held_queues([]) == {}


def test_balance_is_known_where_all_that_is_held_is_and_anything_is() -> None:
    routes = {"t": {"a": 4}}
    assert balance_of([member(A, ("t\0@\0a", (0, 1, 2))), member(B, ("t\0@\0a", (3,)))], routes) == (0.5, 0.0)
    assert balance_of([member(A, ("t\0@\0a", (0, 1, 2))), UNKNOWN], routes) == (None, None)
    assert balance_of([member(A), member(B)], routes) == (None, None)
    assert balance_of([], routes) == (None, None)
