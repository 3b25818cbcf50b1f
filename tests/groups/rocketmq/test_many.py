"""Findings about thousands: limits for what is watched and told, none that hides another finding, and linear work."""

from __future__ import annotations

import msgspec

from streaming.groups.context import Allocation
from streaming.groups.rocketmq.findings import rocketmq_findings
from streaming.groups.rocketmq.state import RocketMQState
from streaming.groups.rocketmq.views import Views
from streaming.records import OK, MemberSeen, SubscriptionSeen
from tests.groups.rocketmq.judged import text
from tests.groups.rocketmq.world import START, TOPIC, A, B, C, Client, World, three


def test_topics_that_members_subscribe_to_differently_are_counted_where_a_detail_has_no_room_for_them() -> None:
    world = three()
    world.clients[A].topics = (TOPIC, *(f"topic-{number:02}" for number in range(20)))
    world.round(2)
    assert text(world, "subscriptions_differ") == (
        f"members of one group must subscribe alike: topic-00 (1 of 3, not {B}, {C}), "
        f"topic-01 (1 of 3, not {B}, {C}), topic-02 (1 of 3, not {B}, {C}) and 17 more"
    )


def test_subscriptions_are_compared_once_each_however_many_there_are() -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    def told(client: str, *more: str) -> MemberSeen:
        topics = (*(f"topic-{number:03}" for number in range(200)), *more)
        return MemberSeen(client, OK, subscriptions=tuple(SubscriptionSeen(Counted(topic)) for topic in topics))

    seen = msgspec.structs.replace(three().observation(), members=(told(A), told(B), told(C, "topic-x")))
    [found] = rocketmq_findings(RocketMQState(), Views(seen, Allocation()), START)
    assert (found.name, found.detail.count("topic-x (1 of 3")) == ("subscriptions_differ", 1)
    # 601 subscriptions, which go through some sets; each topic against all of a member would be 60,000.
    assert compared < 10_000


def test_of_thousands_of_connections_under_one_id_eight_are_watched() -> None:
    world = three()
    world.lists["broker-b"] = [A, B, *[C] * 1_000]
    world.addresses[C] = [f"10.0.0.3:{1_000 + number}" for number in range(1_002)]
    world.round(2)
    assert world.state is not None
    assert world.state.rocketmq is not None
    assert sum(name.startswith("duplicate_client_id") for name in world.state.rocketmq.watched) == 8


def test_of_thousands_of_queues_that_nobody_holds_a_thousand_are_watched() -> None:
    world = World()
    world.routes["n1"][TOPIC] = {"broker-a": 1_001}
    world.join(Client(A))
    world.round(17)
    begin = "at least 1,000 queues held by no member (of these none with unread messages, "
    assert text(world, "held_by_nobody").startswith(begin)
    assert world.state is not None
    assert world.state.rocketmq is not None
    assert len(world.state.rocketmq.watched) == 1_000


def test_thousands_of_queues_of_one_finding_do_not_hide_another_one() -> None:
    world = World()
    world.routes["n1"] = {TOPIC: {"broker-a": 1_200}}
    every = {("broker-a", number) for number in range(1_100)}
    world.join(*(Client(name, held={TOPIC: set(every)}, orderly=True, unlocked=every) for name in (A, B)))
    world.round(17)
    assert text(world, "doubly_held").startswith("at least 1,000 queues held by two or more members, ")
    assert text(world, "held_by_nobody").startswith("100 queues held by no member (none with unread messages, ")
    assert text(world, "orderly_not_locked").endswith(f"orders@broker-a 2 ({A}) and 997 more, at least")
