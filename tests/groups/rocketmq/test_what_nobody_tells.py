"""What no server and no client tells is not known: no member is gone, no queue has two owners or none because of it."""

from __future__ import annotations

import msgspec

from streaming.groups import advance
from streaming.records import OK, BrokerSeen
from tests.groups.rocketmq.world import GROUP, SECOND, TOPIC, A, B, C, Client, D, World, group, three

MINUTE = 60 * SECOND


def kinds(world: World) -> list[str]:
    return [row.kind for row in world.rows.rebalance_churn]


def test_members_are_not_gone_while_no_broker_answers() -> None:
    world = three()
    lists = dict(world.lists)
    world.lists = {"broker-a": None, "broker-b": None}
    world.round(20)
    assert kinds(world) == []
    assert set(world.findings) == {"broker_not_answering"}
    assert world.findings["broker_not_answering"].detail == (
        "brokers do not report the group's members: broker-a (no answer), broker-b (no answer). The lag of their "
        f"queues is not known, nor whether {A}, {B}, {C} are still there"
    )
    assert (world.health.members, world.health.verdict) == (3, "identical")
    world.lists = lists
    world.round()
    assert world.findings == {}
    assert kinds(world) == []


def test_a_member_that_an_answering_broker_has_taken_off_its_list_is_gone_no_matter_who_else_is_silent() -> None:
    world = three()
    world.leave(C)
    world.lists["broker-b"] = None
    world.rebalance()
    world.round(2)
    [row] = world.rows.rebalance_churn
    assert (row.left, [cause.cause for cause in row.causes or ()]) == ((C,), ["member_gone"])


def test_a_member_that_only_a_silent_broker_listed_is_gone_when_that_broker_says_so() -> None:
    world = World()
    world.join(Client(A), Client(B))
    world.clients[C] = Client(C)
    world.lists["broker-b"] = [A, B, C]
    world.settle()
    world.lists["broker-b"] = None
    world.round(20)
    assert kinds(world) == []
    assert f"nor whether {C} are still there" in world.findings["broker_not_answering"].detail
    # Nor does anybody know that the other broker's list lacks it: it may have left.
    assert set(world.findings) == {"broker_not_answering"}
    # A decision of the others forgets neither it nor who listed it.
    world.join(Client("10.0.0.9@1#7"))
    world.rebalance("10.0.0.9@1#7", A, B)
    world.round(20)
    assert [row.left for row in world.rows.rebalance_churn] == [()]
    world.lists["broker-b"] = [A, B, "10.0.0.9@1#7"]
    world.round(2)
    assert [row.left for row in world.rows.rebalance_churn] == [(), (C,)]


def replaced() -> World:
    """A group whose broker and clients were all replaced at the same moment; a round is ten minutes."""
    world = World(interval=10 * MINUTE)
    world.routes = {"n1": {TOPIC: {"broker-a": 4}}}
    world.lists = {"broker-a": []}
    world.join(Client(A), Client(B))
    world.settle()
    world.routes, world.clients, world.lists = {"n1": {TOPIC: {"broker-b": 4}}}, {}, {"broker-b": []}
    world.join(Client(C), Client(D))
    world.rebalance(broker="broker-b")
    return world


def test_members_of_a_broker_that_no_server_names_are_gone_after_a_day() -> None:
    world = replaced()
    world.round(144)
    assert (world.health.members, world.health.verdict) == (4, "unverified")
    assert set(world.findings) == {"broker_not_answering"}
    # 24 h after the first round without the broker; a change counts at the second round that shows it.
    world.round(2)
    assert (world.health.members, world.health.verdict, set(world.findings)) == (2, "identical", set())
    assert world.rows.rebalance_churn[-1].left == (A, B)


def test_members_of_a_silent_broker_are_there_as_long_as_any_server_names_it() -> None:
    world = replaced()
    world.lists["broker-a"] = None
    world.round(300)
    assert (world.health.members, set(world.findings)) == (4, {"broker_not_answering"})
    # One name server that still has it in a route is enough.
    del world.lists["broker-a"]
    world.routes["n2"] = {"%DLQ%billing": {"broker-a": 1}}
    world.round(300)
    assert world.health.members == 4


def test_the_day_of_a_broker_that_no_server_names_begins_again_when_one_does() -> None:
    world = replaced()
    world.round(140)
    world.lists["broker-a"] = None
    world.round()
    del world.lists["broker-a"]
    world.round(144)
    assert world.health.members == 4
    world.round(2)
    assert world.health.members == 2


def test_what_a_silent_member_held_before_does_not_make_a_second_owner() -> None:
    world = three()
    mine = world.clients[C].held["orders"]
    world.clients[C].answer = "timeout"
    world.clients[A].held["orders"] = world.clients[A].held["orders"] | mine
    world.round(20)
    assert set(world.findings) == {"not_answering"}


def test_queues_that_a_silent_member_may_have_taken_are_not_held_by_nobody() -> None:
    world = three()
    world.clients[C].answer = "timeout"
    world.clients[A].held["orders"] = set()
    world.round(20)
    assert set(world.findings) == {"idle_members", "not_answering"}


def test_a_member_that_has_never_answered_may_have_any_share_of_any_topic() -> None:
    world = group(Client(A), Client(B), Client(C))
    world.clients[C].answer = "timeout"
    world.round(20)
    assert set(world.findings) == {"not_answering"}
    [drift] = world.rows.drift
    assert (drift.verdict, drift.reason) == ("unverified", f"members do not tell what they hold (timeout): {C}")
    [what_if] = world.rows.what_if
    assert what_if.reason == "members do not tell what they subscribe to"
    # As soon as it tells, all is as it should be.
    world.clients[C].answer = "ok"
    world.round(2)
    assert (world.health.verdict, world.findings) == ("identical", {})


def test_where_no_member_has_ever_answered_nobody_knows_who_subscribes_to_what() -> None:
    world = World()
    world.join(Client(A, answer="timeout"))
    world.round(20)
    assert set(world.findings) == {"not_answering"}
    assert [(row.verdict, row.reason) for row in world.rows.drift] == [
        ("unverified", f"members do not tell what they hold (timeout): {A}")
    ]


def test_a_master_that_has_just_restarted_beside_a_slave_that_lists_all_stops_nothing() -> None:
    world = World()
    world.routes = {"n1": {TOPIC: {"broker-a": 2}}}
    world.lists = {"broker-a": []}
    world.join(*(Client(name) for name in (A, B, C)))
    world.settle()
    # The master has no list for up to 30 s, until clients send their next heartbeat; all of them answer the slave.
    world.lists = {"broker-a": []}
    world.replicas = [BrokerSeen("broker-a", 1, "broker-a-1:10911", OK, clients=(A, B, C))]
    seen = world.observation()
    told = tuple(world.clients[name].seen() for name in (A, B, C))
    state, _ = advance(world.state, GROUP, [msgspec.structs.replace(seen, members=told)], world.config)
    world.state, world.replicas = state, []
    world.lists = {"broker-a": [A, B, C]}
    world.round()
    assert (kinds(world), world.health.members, world.health.verdict) == ([], 3, "identical")
