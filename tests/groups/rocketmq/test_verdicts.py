"""Verdicts on topics: what members hold against what their own views give, and why it cannot be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streaming.groups import GroupConfig
from streaming.groups.context import Allocation, queue_list
from streaming.groups.rows import DriftRow
from streaming.records import Configured
from tests.groups.rocketmq.world import (
    CIRCLE,
    CONFIG,
    HASH,
    NEARBY,
    RETRY,
    ROOM,
    SECOND,
    TOPIC,
    A,
    B,
    C,
    Client,
    World,
    group,
    three,
    verdicts,
)


def drifted(row: DriftRow) -> list[tuple[str | None, int, str, str | None, tuple[str, ...]]]:
    """Broker, queue, kind, expected and actual owners of each drifted queue."""
    return [(of.broker, of.partition, of.kind, of.expected, of.actual) for of in row.drifted_partitions or ()]


def later(world: World, rounds: int = 7) -> DriftRow:
    """The verdict on the only topic, 60 s after the decision."""
    world.round(rounds)
    [row] = world.rows.drift
    return row


def test_drifted_is_said_after_60_s_without_any_change() -> None:
    world = three()
    world.clients[A].held[TOPIC] |= {("broker-b", 3)}
    world.interval = SECOND
    world.round(60)
    assert (world.rows.drift, world.health.verdict) == ([], "pending")
    world.round()
    [row] = world.rows.drift
    assert (row.verdict, world.health.verdict) == ("drifted", "drifted")
    assert (world.health.drifted_count, row.reason) == (
        1,
        f"members hold what no broker's list and no name server's route explain: {A}",
    )
    # C should own it, and does.
    assert drifted(row) == [("broker-b", 3, "doubly_assigned", C, (A, C))]


def test_a_change_of_a_view_begins_the_60_s_again() -> None:
    world = three()
    world.clients[A].held[TOPIC] |= {("broker-b", 3)}
    world.interval = SECOND
    world.round(60)
    world.routes["n2"] = {TOPIC: dict(world.routes["n1"][TOPIC])}
    world.round(60)
    assert world.rows.drift == []
    world.round()
    assert [row.verdict for row in world.rows.drift] == ["drifted"]


def test_the_first_round_of_all_may_have_the_number_and_the_time_0() -> None:
    world = World()
    world.number = -10
    world.interval = SECOND
    world.elapsed = -SECOND
    world.join(Client(A), Client(B))
    world.rebalance()
    world.clients[A].held[TOPIC] |= world.clients[B].held[TOPIC]
    world.round(60)
    assert (world.rows.drift, world.findings) == ([], {})
    world.round()
    assert [row.verdict for row in world.rows.drift] == ["drifted"]
    assert (world.health.incarnation, set(world.findings)) == (0, {"doubly_held"})


def test_a_topic_that_may_yet_settle_keeps_the_others_waiting() -> None:
    world = group(*(Client(name, topics=(TOPIC, "payments")) for name in (A, B)))
    world.routes["n1"]["payments"] = {"broker-a": 2}
    world.rebalance()
    world.clients[A].held["payments"] = set()
    assert verdicts(world, 6) == {}
    assert {topic: verdict for topic, (verdict, _) in verdicts(world, 2).items()} == {
        TOPIC: "identical",
        "payments": "drifted",
    }


def test_what_a_member_lacks_or_holds_against_all_views_is_unassigned_or_misplaced() -> None:
    world = group()
    world.clients[A].held[TOPIC] = {("broker-a", 0), ("broker-a", 1), ("broker-b", 0)}
    world.clients[B].held[TOPIC] = {("broker-a", 3), ("broker-b", 1)}
    row = later(world)
    # AVG: A a0 to a2, B a3, b0, b1.
    assert drifted(row) == [
        ("broker-a", 2, "unassigned", A, ()),
        ("broker-b", 0, "misplaced", B, (A,)),
    ]
    assert row.reason == f"members hold what no broker's list and no name server's route explain: {A}, {B}"


def test_a_queue_held_twice_breaks_a_rule_of_all_strategies_whatever_else_is_wrong() -> None:
    world = group()
    world.clients[A].held[TOPIC] = {("broker-a", 0), ("broker-a", 1), ("broker-b", 0)}
    row = later(world)
    assert drifted(row) == [
        ("broker-a", 2, "unassigned", A, ()),
        ("broker-b", 0, "doubly_assigned", B, (A, B)),
    ]
    assert row.basis == "invariant"


def test_a_member_that_holds_queues_of_a_topic_that_it_does_not_subscribe_to_drifts() -> None:
    world = group(Client(A), Client(B, topics=("payments",)))
    world.routes["n1"]["payments"] = {"broker-a": 1}
    world.rebalance_topic(world.clients[A], TOPIC, [A], world.routes["n1"][TOPIC])
    world.rebalance_topic(world.clients[B], "payments", [B], world.routes["n1"]["payments"])
    world.clients[B].held[TOPIC] = {("broker-b", 3)}
    world.round(8)
    by_topic = {row.topic: row for row in world.rows.drift}
    assert by_topic[TOPIC].verdict == "drifted"
    assert ("broker-b", 3, "not_subscribed", B, (A, B)) in drifted(by_topic[TOPIC])


def seeing(
    *clients: Client,
    routes: dict[str, dict[str, dict[str, int]]] | None = None,
    lists: dict[str, list[str] | None] | None = None,
    by: dict[str, tuple[str, str]] | None = None,
) -> World:
    """A group of A, B and C whose clients rebalance by a broker's list and a name server's route.

    Routes are added to those of n1, lists replace those of their brokers; by default clients see broker-a and n1.
    """
    world = group(*clients)
    for server, topics in (routes or {}).items():
        world.routes.setdefault(server, {}).update(topics)
    world.lists |= lists or {}
    for name in world.clients:
        broker, server = (by or {}).get(name, ("broker-a", "n1"))
        world.rebalance(name, broker=broker, server=server)
    return world


FULL = {TOPIC: {"broker-a": 4, "broker-b": 4}}
HALF = {TOPIC: {"broker-a": 4, "broker-b": 0}}
SPLIT = "each member follows a view of its own, and these differ"

SPLITS: dict[str, tuple[list[Client], dict[str, Any], str]] = {
    "mixed": (
        [Client(A), Client(B), Client(C, strategy=CIRCLE)],
        {},
        SPLIT,
    ),
    "twice": (
        [],
        {"lists": {"broker-a": [A, B, C, A], "broker-b": [A, B, C, A]}},
        SPLIT,
    ),
    "outside": (
        [Client(A), Client(B, topics=("payments",))],
        {},
        SPLIT,
    ),
    "poorer": (
        [],
        {"routes": {"n2": {TOPIC: {"broker-a": 4}}}, "by": {C: ("broker-a", "n2")}},
        SPLIT,
    ),
    "unknown": (
        [],
        {
            "routes": {"n2": FULL, "n3": {TOPIC: {"broker-b": 4}, RETRY: {"broker-a": 1}}},
            "by": {C: ("broker-a", "n3")},
        },
        SPLIT,
    ),
    "lists": (
        [],
        {"lists": {"broker-b": [A, B]}, "by": {A: ("broker-b", "n1")}},
        SPLIT,
    ),
    # Clients choose among all brokers of the route, `MQClientInstance.findBrokerAddrByTopic`.
    "a list from a broker whose queues nobody can read": (
        [],
        {"routes": {"n1": HALF}, "lists": {"broker-b": [A, B]}, "by": {B: ("broker-b", "n1")}},
        SPLIT,
    ),
    "no list from such a broker": (
        [],
        {"routes": {"n1": HALF}, "lists": {"broker-b": None}},
        "brokers did not tell their list of members: broker-b",
    ),
    "no queue that can be read": (
        [],
        {"routes": {"n1": {TOPIC: {"broker-a": 0, "broker-b": 0}}}},
        "no name server tells queues that can be read, or no broker of it tells members",
    ),
}


@pytest.mark.parametrize("case", SPLITS)
def test_members_that_see_different_views_are_split(case: str) -> None:
    clients, views, reason = SPLITS[case]
    world = seeing(*clients, **views)
    world.round(9)
    assert [row.reason for row in world.rows.drift if row.topic == TOPIC] == [reason]


def silent(world: World) -> None:
    world.clients[C].answer = "timeout"


def without_queues(world: World) -> None:
    world.clients[C].more["queues"] = None


def without_a_list(world: World) -> None:
    world.lists["broker-b"] = None


def of_a_class_of_their_own(world: World) -> None:
    for client in world.clients.values():
        client.strategy = "com.acme.Mine"


def without_a_strategy(world: World) -> None:
    world.clients[C].more |= {"strategy": None, "language": "GO"}
    world.clients[C].held[TOPIC] = {("broker-b", 2)}


WHY_NOT: dict[Callable[[World], None], str] = {
    silent: f"members do not tell what they hold (timeout): {C}",
    without_queues: f"members do not tell what they hold (ok): {C}",
    without_a_list: "brokers did not tell their list of members: broker-b",
    of_a_class_of_their_own: "strategy com.acme.Mine is not one of RocketMQ's: it cannot be recomputed",
    without_a_strategy: "GO clients do not tell their strategy",
}


@pytest.mark.parametrize("change", WHY_NOT, ids=lambda change: change.__name__)
def test_what_cannot_be_computed_is_unverified_for_a_reason(change: Callable[[World], None]) -> None:
    reason = WHY_NOT[change]
    world = group()
    change(world)
    assert verdicts(world, 9) == {TOPIC: ("unverified", reason)}
    assert (world.health.verdict, world.health.verdict_reason) == ("unverified", reason)


@pytest.mark.parametrize(
    "change", [silent, without_a_strategy, of_a_class_of_their_own], ids=lambda change: change.__name__
)
def test_two_members_that_say_that_they_hold_a_queue_drift_whatever_else_is_not_known(
    change: Callable[[World], None],
) -> None:
    reason = WHY_NOT[change]
    world = group()
    change(world)
    world.clients[A].held[TOPIC] |= {("broker-b", 0)}
    world.round(9)
    [row] = world.rows.drift
    assert (row.verdict, row.reason) == ("drifted", reason)
    assert ("broker-b", 0, "doubly_assigned", (A, B)) in [(of[0], of[1], of[2], of[4]) for of in drifted(row)]


def test_the_worst_topic_is_the_verdict_of_the_group() -> None:
    world = group(*(Client(name, topics=(TOPIC, "payments")) for name in (A, B, C)))
    world.routes["n1"]["payments"] = {"broker-a": 2, "broker-b": 2}
    world.rebalance()
    world.clients[A].held[TOPIC] -= {("broker-a", 0)}
    world.clients[B].held["payments"] = set()
    found = verdicts(world, 9)
    assert {topic: verdict for topic, (verdict, _) in found.items()} == {TOPIC: "drifted", "payments": "drifted"}
    # One queue of orders, and the one of payments that is B's: AVG gives A two, B and C one each.
    assert (world.health.verdict, world.health.drifted_count) == ("drifted", 2)


def locked_out(by: str | None) -> World:
    """An orderly group in which B lacks b1 of its share, which another member holds, or nobody."""
    world = group(*(Client(name, orderly=True) for name in (A, B, C)))
    world.clients[B].held[TOPIC] -= {("broker-b", 1)}
    if by is not None:
        world.clients[by].held[TOPIC] |= {("broker-b", 1)}
    return world


def test_an_orderly_member_waits_for_a_lock_that_another_one_holds() -> None:
    world = locked_out(C)
    world.round(9)
    [row] = world.rows.drift
    # C has more than its share; B has done as it should.
    assert row.reason == f"members hold what no broker's list and no name server's route explain: {C}"
    assert drifted(row) == [("broker-b", 1, "misplaced", B, (C,))]


def test_an_orderly_member_that_leaves_a_queue_to_nobody_has_not_done_as_it_should() -> None:
    [row] = (world := locked_out(None)).round(9).drift
    assert row.reason == f"members hold what no broker's list and no name server's route explain: {B}"
    assert world.health.verdict == "drifted"


def test_a_list_of_config_may_give_a_queue_to_several_members_and_leave_some_out() -> None:
    # Every member gets what the list has, of every topic.
    listed = queue_list([(TOPIC, "broker-a", 0), ("payments", "broker-a", 1)])
    world = group(*(Client(name, strategy=CONFIG) for name in (A, B)), allocation=Allocation(message_queue_list=listed))
    for client in world.clients.values():
        client.held[TOPIC] = {("broker-a", 0)}
    assert verdicts(world) == {TOPIC: ("identical", None)}
    world.round(9)
    assert world.findings == {}


def test_rooms_leave_queues_out_by_configuration() -> None:
    # MACHINE_ROOM deals only the queues of brokers of its rooms ("east@broker-a").
    allocation = Allocation(consumeridcs=frozenset({"east"}))
    world = World(GroupConfig("test", allocation=lambda _: allocation))
    world.routes["n1"][TOPIC] = {"east@a": 2, "west@b": 2}
    world.lists = {"east@a": [], "west@b": []}
    world.join(*(Client(name, strategy=ROOM) for name in (A, B)))
    world.clients[A].held[TOPIC] = {("east@a", 0)}
    world.clients[B].held[TOPIC] = {("east@a", 1)}
    assert verdicts(world) == {TOPIC: ("identical", None)}
    world.round(9)
    assert world.findings == {}


def test_consistent_hash_without_its_number_of_nodes_is_believed_only_where_the_default_fits() -> None:
    reason = "the number of virtual nodes of CONSISTENT_HASH is not configured, and 10 do not give this"
    world = group(*(Client(name, strategy=HASH) for name in (A, B)))
    assert verdicts(world) == {TOPIC: ("identical", None)}
    a, b = world.clients[A].held, world.clients[B].held
    a[TOPIC], b[TOPIC] = b[TOPIC], a[TOPIC]
    assert verdicts(world, 9) == {TOPIC: ("unverified", reason)}


def test_what_members_hold_whose_strategy_fails_by_every_view_is_not_known_to_be_right() -> None:
    # By this separator the room of each client is "", for which AllocateMachineRoomNearby throws.
    allocation = Allocation(room_separator="10.", nearby_delegate="AVG")
    world = World(GroupConfig("test", allocation=lambda _: allocation))
    world.join(*(Client(name, strategy=NEARBY) for name in (A, B)))
    world.clients[A].held[TOPIC] = {("broker-a", 0), ("broker-b", 0)}
    reason = f"by what they see, the strategy fails for members, which keep what they had: {A}, {B}"
    assert verdicts(world, 9) == {TOPIC: ("unverified", reason)}
    # Two members that hold one queue are wrong whatever the strategy gives.
    world.clients[B].held[TOPIC] = {("broker-a", 0)}
    assert verdicts(world, 9) == {TOPIC: ("drifted", reason)}


def test_a_strategy_that_fails_by_one_view_explains_nothing_and_another_view_what_it_gives() -> None:
    allocation = Allocation(room_separator="@", nearby_delegate="AVG")
    world = World(GroupConfig("test", allocation=lambda _: allocation))
    world.join(*(Client(name, strategy=NEARBY) for name in (A, B)))
    # This client's room is "". It is on one broker's list alone, and in no room it gets no queue.
    world.clients["@"] = Client("@", strategy=NEARBY, topics=())
    world.lists["broker-b"] = [A, B, "@"]
    world.clients[A].held[TOPIC] = {("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1)}
    world.clients[B].held[TOPIC] = {("broker-a", 2), ("broker-a", 3), ("broker-b", 2), ("broker-b", 3)}
    assert verdicts(world, 9) == {TOPIC: ("identical", None)}
    world.clients[B].held[TOPIC].remove(("broker-b", 3))
    reason = f"by what they see, the strategy fails for members, which keep what they had: {B}"
    assert verdicts(world, 9) == {TOPIC: ("unverified", reason)}


def test_the_libraries_of_a_verdict_are_those_of_its_members_by_name() -> None:
    clients = [
        Client(A, more={"version": "V5_5_0", "language": "JAVA"}),
        Client(B, more={"version": "V4_9_8", "language": "JAVA"}),
        Client(C, more={"version": None, "language": None}),
        Client("10.0.0.4@1", more={"version": "V5_5_0", "language": "JAVA"}),
        Client("10.0.0.5@1", more={"version": "V5_0_0", "language": "JAVA"}),
    ]
    world = group(*clients)
    world.round(2)
    [row] = world.rows.drift
    assert row.matching_library == "java:4.9.8, java:5.0.0, java:5.5.0"


def test_each_view_that_was_computed_for_a_member_is_a_candidate() -> None:
    # Three members; each holds what the first pair of views gives.
    world = three()
    world.clients[A].started += 1
    world.round(2)
    assert [row.candidates for row in world.rows.drift] == [3]


def test_a_change_of_the_settings_judges_the_newest_decision_once_more() -> None:
    world = three()
    judged = []
    for configured in (Configured("v1", "AVG_BY_CIRCLE"), Configured("v2", "AVG"), Configured("v3", "AVG")):
        world.configured = configured
        rows = world.round(2)
        judged += [(row.verdict, row.own_verdict, row.configuration_version) for row in rows.drift]
        assert rows.what_if == []
    assert judged == [("drifted", "identical", "v1"), ("identical", "identical", "v2")]
    assert (world.health.verdict, world.health.strategy_mismatch) == ("identical", False)
