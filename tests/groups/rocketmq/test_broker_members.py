"""Rows of `broker_members`: one broker's list of a group's clients, when it changes and once per heartbeat."""

from __future__ import annotations

import msgspec

from streaming.groups import GroupConfig
from streaming.groups.rows import BrokerClient, BrokerMembersRow
from streaming.records import ERROR, NONE, OK, BrokerSeen, ChannelSeen, SubscriptionSeen
from tests.groups.rocketmq.world import A, B, C, Client, World, three


def rows_of(world: World, broker: str = "broker-b", rounds: int = 1) -> list[BrokerMembersRow]:
    return [row for row in world.round(rounds).broker_members if row.broker == broker]


def test_a_list_is_written_when_it_changes_and_once_per_heartbeat() -> None:
    world = World(GroupConfig("test", heartbeat_ms=60_000))
    world.join(Client(A))
    # (Rounds come every 10 s.)
    assert [row.round for row in rows_of(world, rounds=13)] == [10, 70, 130]
    world.lists["broker-b"].append(B)  # type: ignore[union-attr]
    assert [row.connections for row in rows_of(world, rounds=6)] == [2]
    assert [row.connections for row in rows_of(world)] == [2]


def test_an_idle_group_s_lists_are_written_at_each_round_that_has_it() -> None:
    world = three()
    seen = world.observation
    world.observation = lambda: msgspec.structs.replace(seen(), idle=True)  # type: ignore[method-assign]
    assert len(rows_of(world, rounds=3)) == 3


def test_a_broker_that_never_had_a_client_of_the_group_has_no_rows() -> None:
    world = World()
    world.routes["n1"]["orders"] = {"broker-a": 4}
    world.clients[A] = Client(A)
    world.lists = {"broker-0": [], "broker-a": [A]}
    world.round(20)
    assert {row.broker for row in world.rows.broker_members} == {"broker-a"}
    # As soon as the topic has queues there, it lacks a member.
    world.routes["n1"]["orders"]["broker-0"] = 4
    [row] = rows_of(world, "broker-0")
    assert (row.answer, row.connections, row.missing) == (NONE, 0, (A,))


def test_a_broker_that_does_not_answer_tells_nothing() -> None:
    world = three()
    world.lists["broker-b"] = None
    [row] = rows_of(world)
    assert (row.answer, row.reason) == ("timeout", "no answer")
    assert (row.connections, row.clients, row.missing, row.duplicated) == (None, None, None, None)


def test_a_client_that_is_listed_twice_is_duplicated_with_each_connection_as_the_broker_tells_it() -> None:
    world = three()
    world.lists["broker-b"] += [C, A, A]  # type: ignore[operator]
    world.broker_more["channels"] = (
        ChannelSeen(A, "10.0.0.1:1", "JAVA", "V5_5_0"),
        ChannelSeen(A, "10.0.0.1:2", "GO", "V2_1_2"),
        ChannelSeen(C, "10.0.0.3:1", None, None),
    )
    [row] = rows_of(world)
    assert (row.connections, row.duplicated) == (6, (A, C))
    assert row.clients == (
        BrokerClient(A, "10.0.0.1:1", "JAVA", "V5_5_0"),
        BrokerClient(A, "10.0.0.1:2", "GO", "V2_1_2"),
        BrokerClient(A, None, None, None),
        BrokerClient(B, None, None, None),
        BrokerClient(C, "10.0.0.3:1", None, None),
        BrokerClient(C, None, None, None),
    )


def test_a_row_names_two_thousand_connections_and_counts_all() -> None:
    world = three()
    world.lists["broker-b"] = [f"client-{number:04}" for number in range(2_001)]
    [row] = rows_of(world)
    assert (row.connections, len(row.clients or ()), (row.clients or ())[-1].client_id) == (2_001, 2_000, "client-1999")


def test_what_the_broker_says_of_the_group_is_in_its_row() -> None:
    world = three()
    world.broker_more |= {
        "consume_type": "push",
        "message_model": "CLUSTERING",
        "consume_from": "CONSUME_FROM_LAST_OFFSET",
        "subscriptions": (SubscriptionSeen("%RETRY%billing"), SubscriptionSeen("orders")),
        "version": "V5_5_0",
        "consume_enabled": False,
    }
    [row] = rows_of(world)
    assert (row.consume_type, row.message_model, row.consume_from) == ("push", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET")
    assert (row.subscription, row.broker_version, row.consume_enabled) == (("orders",), "V5_5_0", False)


def test_a_slave_has_a_list_of_its_own_that_lacks_nobody() -> None:
    # Clients ask the master, and tell slaves as well.
    world = three()
    world.replicas = [BrokerSeen("broker-b", 1, "broker-b-1:10911", OK, clients=(A,))]
    world.lists["broker-b"].remove(C)  # type: ignore[union-attr]
    master, slave = sorted(rows_of(world), key=lambda row: row.broker_id)
    assert (master.address, master.connections, master.missing) == ("broker-b:10911", 2, (C,))
    assert (slave.address, slave.broker_id, slave.connections, slave.missing) == ("broker-b-1:10911", 1, 1, ())


def test_a_broker_that_is_not_asked_any_more_gets_a_closing_row() -> None:
    world = three()
    world.replicas = [BrokerSeen("broker-b", 1, "broker-b-1:10911", OK, clients=(A,))]
    world.round()
    world.replicas = []
    [row] = rows_of(world)
    assert (row.ended, row.address, row.broker_id, row.connections) == (True, "broker-b-1:10911", 1, 0)
    assert rows_of(world) == []


def test_the_end_of_a_group_closes_the_list_of_each_broker() -> None:
    world = three()
    seen = world.observation
    world.observation = lambda: msgspec.structs.replace(seen(), gone="deleted")  # type: ignore[method-assign]
    assert [(row.broker, row.ended) for row in world.round().broker_members] == [("broker-a", True), ("broker-b", True)]


def test_a_list_from_another_replica_stands_for_a_master_that_does_not_answer() -> None:
    world = three()
    world.lists["broker-b"] = None
    world.replicas = [
        BrokerSeen("broker-b", 2, "broker-b-2:10911", OK, clients=(A,)),
        BrokerSeen("broker-b", 1, "broker-b-1:10911", OK, clients=(A, B)),
        BrokerSeen("broker-b", 3, "broker-b-3:10911", ERROR),
    ]
    world.round(2)
    assert set(world.findings) == {"member_lists_differ"}
    assert f"{C} is not on the list of broker-b" in world.findings["member_lists_differ"].detail
    assert "broker-b has 2" in world.findings["member_lists_differ"].detail
