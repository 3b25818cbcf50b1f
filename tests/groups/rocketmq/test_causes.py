"""Why a RocketMQ group decided again, and each broker's list of its clients."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups import GroupConfig
from streaming.groups.rocketmq.decisions import rocketmq_causes
from streaming.groups.rocketmq.round import record_of
from streaming.groups.rocketmq.state import DecisionInputs
from streaming.groups.rows import BrokerClient, BrokerMembersRow, Cause
from streaming.records import NONE, OK, BrokerSeen, ChannelSeen, Member, MembershipRecord, SubscriptionSeen
from tests.groups.rocketmq.world import CIRCLE, TOPIC, A, B, C, Client, D, World, three


def decision(*clients: str) -> MembershipRecord:
    members = tuple(Member(name, None, name, "", -1, -1, None, (), (), None, None, None, ()) for name in clients)
    return record_of(members, 10, 1_000, "AVG")


def causes(
    before: DecisionInputs,
    after: DecisionInputs,
    was: str | tuple[str, ...],
    now: str | tuple[str, ...],
    known: tuple[str, ...] = (),
) -> list[tuple[str, tuple[str, ...], str | None, str | None, str | None]]:
    """Cause, members, topic, before and after."""
    found = rocketmq_causes(before, after, decision(*was), decision(*now), known)
    return [(one.cause, one.members, one.topic, one.before, one.after) for one in found]


def of_members(cause: str, *members: str) -> tuple[str, tuple[str, ...], None, None, None]:
    return cause, members, None, None, None


ON_X_AND_Y = {"orders": {"x": 4, "y": 4}}
LISTED = {"x": ("a", "b", "c"), "y": ("a", "b", "c"), "z": ("a",), "w": ("a",)}

# What clients decided by before and after, the members before and after, and the causes.
CAUSES: dict[str, tuple[DecisionInputs, DecisionInputs, str, str, list[Any]]] = {
    "members come and go, and those that had not answered were frozen": (
        *(DecisionInputs(silent=("b",)), DecisionInputs(silent=("c", "e")), "abcd", "aef"),
        [
            of_members("member_joined", "e", "f"),
            of_members("member_gone", "d"),
            of_members("member_frozen", "b", "c"),
        ],
    ),
    # c is gone; of d nobody knows now, of f nobody knew before; e is new.
    "a member with another start time has joined again": (
        DecisionInputs(started={"a": 5, "b": 6, "c": 7, "d": 8}),
        DecisionInputs(started={"a": 5, "b": 9, "c": 8, "e": 9, "f": 9}),
        *("abcdf", "abdef"),
        [of_members("member_joined", "e"), of_members("member_gone", "c"), of_members("rejoined", "b")],
    ),
    "brokers leave routes and come back or are new": (
        DecisionInputs(routes={"orders": {"a": 4, "b": 4}, "payments": {"a": 1}}),
        DecisionInputs(routes={"orders": {"a": 4, "c": 4, "d": 4}, "payments": {"a": 1}}),
        *("x", "x"),
        [
            ("broker_down", (), None, "b", None),
            ("broker_up", (), None, None, "d"),
            ("broker_added", (), None, None, "c"),
        ],
    ),
    "queues change on brokers that were there before and are there now": (
        DecisionInputs(
            routes={"grown": {"a": 4, "b": 4}, "same": {"a": 1, "b": 2}, "gone": {"a": 1}, "emptied": {"b": 2}}
        ),
        DecisionInputs(
            routes={"grown": {"a": 4, "b": 6}, "same": {"a": 1, "b": 2, "d": 4}, "new": {"a": 1}, "emptied": {}}
        ),
        *("x", "x"),
        [
            ("partitions_changed", (), "emptied", "b 2", "0"),
            ("partitions_changed", (), "grown", "a 4, b 4", "a 4, b 6"),
            ("broker_up", (), None, None, "d"),
        ],
    ),
    # c had told nothing, d tells nothing.
    "subscriptions of members that told them both times change": (
        DecisionInputs(subscriptions={"a": ("t", "u"), "b": ("t",), "d": ("t",)}),
        DecisionInputs(subscriptions={"a": ("t", "v"), "b": ("t", "v"), "c": ("w",)}),
        *("abcd", "abcd"),
        [
            ("subscription_changed", ("a",), "u", "1", "0"),
            ("subscription_changed", ("a", "b"), "v", "0", "2"),
        ],
    ),
    "members that run another strategy are named by it": (
        DecisionInputs(strategies={"a": "AVG", "b": "AVG", "c": "CONFIG", "d": "AVG", "f": "AVG"}),
        DecisionInputs(strategies={"a": "CONFIG", "b": "CONFIG", "c": "AVG", "e": "AVG", "f": "AVG"}),
        *("abcdef", "abcdef"),
        [
            ("strategy_changed", ("a", "b"), None, "AVG", "CONFIG"),
            ("strategy_changed", ("c",), None, "CONFIG", "AVG"),
        ],
    ),
    # z and w have no queue of the group; d is new, so its lists are.
    "members are on other lists, or twice on one": (
        DecisionInputs(ON_X_AND_Y, lists=LISTED),
        DecisionInputs(ON_X_AND_Y, lists={"x": ("a", "b", "c"), "y": ("b", "c", "c", "d"), "z": (), "v": ("b",)}),
        *("abc", "abcd"),
        [of_members("member_joined", "d"), of_members("member_lists_changed", "a", "c")],
    ),
    "a broker that is gone has no list": (
        DecisionInputs({"orders": {"x": 4, "y": 4, "z": 4}}, lists=LISTED),
        DecisionInputs(ON_X_AND_Y, lists={**LISTED, "z": ()}),
        *("abc", "abc"),
        [("broker_down", (), None, "z", None)],
    ),
    "a broker that gets the topic gets the members on its list for that reason": (
        DecisionInputs(ON_X_AND_Y, lists={**LISTED, "z": ()}),
        DecisionInputs({"orders": {"x": 4, "y": 4, "z": 4}}, lists=LISTED),
        *("abc", "abc"),
        [("broker_added", (), None, None, "z")],
    ),
    "where nothing is seen to differ clients have settled": (
        *(DecisionInputs(), DecisionInputs(), "ab", "ab"),
        [("settled", (), None, None, None)],
    ),
    "with members that differ there is always a cause": (
        *(DecisionInputs(), DecisionInputs(), "ab", "a"),
        [of_members("member_gone", "b")],
    ),
}


@pytest.mark.parametrize("case", CAUSES)
def test_a_cause_is_a_difference_between_what_clients_decided_by(case: str) -> None:
    before, after, was, now, expected = CAUSES[case]
    assert causes(before, after, was, now, known=("a", "b", "d")) == expected


def test_name_servers_differ_and_agree_again() -> None:
    differ, agree = DecisionInputs(poorer=("n1", "n2")), DecisionInputs()
    [found] = rocketmq_causes(agree, differ, decision("a"), decision("a"), ())
    assert (found.cause, found.before, found.after) == ("name_server_differs", "", "n1, n2")
    assert found.evidence == "name servers report different queues"
    [found] = rocketmq_causes(differ, agree, decision("a"), decision("a"), ())
    assert (found.before, found.after) == ("n1, n2", "")
    assert found.evidence == "name servers report the same queues again"


def caused(world: World, rounds: int = 2) -> list[Cause]:
    """Causes of the one decision in the next rounds."""
    [churn] = world.round(rounds).rebalance_churn
    return list(churn.causes or ())


def test_five_hundred_brokers_are_remembered_those_that_were_away_for_longest_are_not() -> None:
    world = World()
    names = [f"broker-{number:03}" for number in range(499)]

    def decide(*brokers: str) -> list[tuple[str, str | None]]:
        """Let the topic be on other brokers; causes with the broker that came."""
        world.routes = {"n1": {TOPIC: dict.fromkeys(brokers, 1)}}
        world.rebalance()
        [row] = world.round(2).rebalance_churn
        return [
            (cause.cause, cause.after) for cause in row.causes or () if cause.cause in {"broker_added", "broker_up"}
        ]

    world.join(Client(A))
    decide("oldest")
    decide(*names)
    assert decide("oldest") == [("broker_up", "oldest")]
    decide("one-more")
    # 501 names by now. The first that the second decision had is forgotten, not those that came or were seen later.
    assert decide("oldest", "one-more", names[-1]) == [("broker_up", names[-1]), ("broker_up", "oldest")]
    assert decide(names[0]) == [("broker_added", names[0])]
    assert len(world.state.rocketmq.brokers) == 500


def test_a_member_that_starts_again_or_runs_another_strategy_decides_although_it_holds_the_same() -> None:
    world = three()
    world.clients[B].started += 1
    assert [(one.cause, one.members) for one in caused(world)] == [("rejoined", (B,))]
    # One client of the three: so it holds what it held.
    world.clients[C].strategy = CIRCLE
    assert [(one.cause, one.members) for one in caused(world)] == [("strategy_changed", (C,))]


@pytest.mark.parametrize(
    ("later_ms", "cause"), [(0, ("settled", ())), (1, ("rejoined", (C,)))], ids=["the same", "started again"]
)
def test_a_member_that_was_silent_at_a_decision_is_compared_with_what_it_told_before(
    later_ms: int, cause: tuple[str, tuple[str, ...]]
) -> None:
    world = three()
    world.clients[C].answer = "timeout"
    world.round(3)
    world.join(Client(D))
    world.rebalance(A, B, D)
    assert [one.cause for one in caused(world)] == ["member_joined"]
    world.clients[C].answer = "ok"
    world.clients[C].started += later_ms
    world.rebalance()
    assert [(one.cause, one.members) for one in caused(world)] == [cause]


def test_a_member_that_did_not_answer_in_two_rounds_before_it_is_gone_was_frozen() -> None:
    for silent, cause in ((0, "member_gone"), (1, "member_gone"), (2, "member_frozen")):
        world = three()
        world.clients[C].answer = "timeout"
        world.round(silent)
        world.leave(C)
        world.rebalance()
        assert [(one.cause, one.members) for one in caused(world)] == [(cause, (C,))]


def rows_of(world: World, broker: str = "broker-b", rounds: int = 1) -> list[BrokerMembersRow]:
    return [row for row in world.round(rounds).broker_members if row.broker == broker]


def test_a_list_is_written_when_it_changes_and_once_per_heartbeat() -> None:
    world = World(GroupConfig("test", heartbeat_ms=60_000))
    world.join(Client(A))
    # Rounds come every 10 s.
    assert [row.round for row in rows_of(world, rounds=13)] == [10, 70, 130]
    world.lists["broker-b"].append(B)  # type: ignore[union-attr]
    assert [row.connections for row in rows_of(world, rounds=6)] == [2]
    assert [row.connections for row in rows_of(world)] == [2]


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
    world.round_more["gone"] = "deleted"
    assert [(row.broker, row.ended) for row in world.round().broker_members] == [("broker-a", True), ("broker-b", True)]
