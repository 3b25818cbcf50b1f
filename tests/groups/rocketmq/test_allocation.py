"""Which strategy a client runs, by its class, its release and the configuration, and what is sure of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from assignors.rocketmq import AllocateStrategy, Queues
from streaming.groups.context import Allocation, queue_list
from streaming.groups.rocketmq.allocation import Computed, Queue, Runs, name_of, options_of, runs
from streaming.groups.rocketmq.owners import OWNERS_MS
from streaming.records import OK, MemberSeen
from tests.groups.rocketmq.world import AVG, CIRCLE, CONFIG, HASH, NEARBY, ROOM, TOPIC, A, B, C, Client, World, three

NOTHING = Allocation()
ROOMS = Allocation(consumeridcs=frozenset({"east"}))
NODES = Allocation(virtual_node_cnt=20)
LIST = Allocation(message_queue_list=queue_list([("orders", "broker-a", 0)]))
SEPARATED = Allocation(room_separator="-")


def test_a_strategy_is_named_by_its_class_in_either_package() -> None:
    # `getName()` of each class, apache/rocketmq 5.5.0.
    for class_name, name in (
        (AVG, "AVG"),
        (CIRCLE, "AVG_BY_CIRCLE"),
        (CONFIG, "CONFIG"),
        (ROOM, "MACHINE_ROOM"),
        (HASH, "CONSISTENT_HASH"),
        (NEARBY, "MACHINE_ROOM_NEARBY-AVG"),
    ):
        assert name_of(class_name, NOTHING) == name
        old = class_name.replace("org.apache.rocketmq", "com.alibaba.rocketmq")
        assert name_of(old, NOTHING) == name
    assert name_of(NEARBY, Allocation(nearby_delegate="AVG_BY_CIRCLE")) == "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"


@pytest.mark.parametrize(
    "class_name", ["AllocateMessageQueueAveragely", "com.acme.AllocateMessageQueueAveragely", f"{AVG}2"]
)
def test_a_class_of_somebody_else_has_its_own_name_and_is_not_computed(class_name: str) -> None:
    assert name_of(class_name, NOTHING) == class_name
    found = runs(MemberSeen(A, OK, strategy=class_name), NOTHING)
    assert (found.name, found.strategy, found.is_sure) == (class_name, None, False)
    assert found.why_not == f"strategy {class_name} is not one of RocketMQ's: it cannot be recomputed"


@pytest.mark.parametrize(("language", "word"), [("GO", "GO"), (None, "such")])
def test_a_client_that_tells_no_strategy_is_tried_with_avg_and_believed_only_where_it_fits(
    language: str | None, word: str
) -> None:
    found = runs(MemberSeen(A, OK, language=language), NOTHING)
    assert found.name == "AVG"
    assert found.strategy is not None
    assert (found.is_sure, found.why_not) == (False, f"{word} clients do not tell their strategy")


SURE = (True, True, None)


@pytest.mark.parametrize(
    ("class_name", "allocation", "expected"),
    [
        (AVG, NOTHING, SURE),
        (CIRCLE, NOTHING, SURE),
        (CONFIG, NOTHING, (False, False, "the queue list of CONFIG is not configured")),
        (CONFIG, LIST, SURE),
        (ROOM, NOTHING, (False, False, "the rooms of MACHINE_ROOM are not configured")),
        (ROOM, ROOMS, SURE),
        # The class's own default is computed; a difference proves nothing.
        (
            HASH,
            NOTHING,
            (
                True,
                False,
                "the number of virtual nodes of CONSISTENT_HASH is not configured, and 10 do not give this",
            ),
        ),
        (HASH, NODES, SURE),
        (NEARBY, NOTHING, (False, False, "the rule for rooms of MACHINE_ROOM_NEARBY is not configured")),
        (NEARBY, SEPARATED, SURE),
        (
            NEARBY,
            Allocation(room_separator="-", nearby_delegate="CONFIG"),
            (False, False, "the queue list of CONFIG is not configured"),
        ),
    ],
)
def test_what_is_sure_of_a_strategy_depends_on_what_is_configured(
    class_name: str, allocation: Allocation, expected: tuple[bool, bool, str | None]
) -> None:
    found = runs(MemberSeen(A, OK, strategy=class_name, version="V5_5_0"), allocation)
    assert (found.strategy is not None, found.is_sure, found.why_not) == expected


def test_consistent_hash_has_the_ten_virtual_nodes_of_its_class_where_no_number_is_configured() -> None:
    # `AllocateMessageQueueConsistentHash()`, apache/rocketmq 5.5.0
    assert (options_of(NOTHING).virtual_node_cnt, options_of(NODES).virtual_node_cnt) == (10, 20)


@pytest.mark.parametrize(
    ("class_name", "allocation", "client", "version", "is_sure"),
    [
        # apache/rocketmq#2477, in 4.8.0
        (ROOM, ROOMS, A, "V4_7_1", False),
        (ROOM, ROOMS, A, "V4_7_1_SNAPSHOT", False),
        (ROOM, ROOMS, A, "4.7.1", False),
        (ROOM, ROOMS, A, "V3_9_9", False),
        (ROOM, ROOMS, A, "V4_8_0", True),
        (ROOM, ROOMS, A, "V5_0_0", True),
        (NEARBY, Allocation(None, None, frozenset({"a"}), "-", "MACHINE_ROOM"), A, "V4_7_1", False),
        (NEARBY, Allocation(None, None, frozenset({"a"}), "-", "MACHINE_ROOM"), A, "V4_8_0", True),
        (NEARBY, SEPARATED, A, "V4_7_1", True),
        (AVG, NOTHING, A, "V4_7_1", True),
        # f23fdbe016, in 5.0.0
        (HASH, NODES, "größe@1", "V4_9_8", False),
        (HASH, NODES, A, "V4_9_8", True),
        (HASH, NODES, "größe@1", "V5_0_0", True),
        (AVG, NOTHING, "größe@1", "V4_9_8", True),
        # What cannot be read is a new one: all of today are.
        (ROOM, ROOMS, A, None, True),
        (ROOM, ROOMS, A, "511", True),
        (ROOM, ROOMS, A, "V4_7_RC", True),
        (ROOM, ROOMS, A, "V4_7_1000", True),
        (ROOM, ROOMS, A, "V4_7_999", False),
    ],
)
def test_what_a_release_did_otherwise_is_not_sure(
    class_name: str, allocation: Allocation, client: str, version: str | None, is_sure: bool
) -> None:
    found = runs(MemberSeen(client, OK, strategy=class_name, version=version), allocation)
    assert found.is_sure == is_sure
    assert found.strategy is not None
    assert (found.why_not is None) == is_sure


class HalfForEach(AllocateStrategy):
    """Gives the first client the first half of the queues and everybody else the second; counts its views."""

    name = "HALF"
    prepared = 0

    def prepare(self, queues: Queues, clients: Sequence[str]) -> Callable[[str], Queues | None]:
        self.prepared += 1
        half = len(queues) // 2
        return lambda client: queues[:half] if client == clients[0] else queues[half:]


class NeverHashed(tuple[Queue, ...]):
    """Queues of a view, which may be a quarter of a million."""

    def __hash__(self) -> int:
        raise AssertionError


def test_a_view_is_prepared_once_for_all_clients_on_its_list_or_not_and_never_hashed() -> None:
    strategy = HalfForEach()
    views = [(NeverHashed((("broker-a", 0), ("broker-a", 1))), (A, B)), (NeverHashed((("broker-a", 0),)), (A,))]
    computed, half = Computed(TOPIC, views), Runs("HALF", strategy, is_sure=True)
    shares = {client: [computed.share(half, client, view) for view in (0, 1, 0)] for client in (A, B, C)}
    first, second = frozenset({("broker-a", 0)}), frozenset({("broker-a", 1)})
    assert shares == {A: [first, frozenset(), first], B: [second, first, second], C: [second, first, second]}
    assert strategy.prepared == 2


def test_a_settled_group_of_three_is_identical_and_nothing_is_said() -> None:
    world = World()
    world.join(*(Client(name) for name in (A, B, C)))
    world.rebalance()
    world.round(2)
    [churn] = world.rows.rebalance_churn
    assert (churn.kind, churn.members, churn.partitions, churn.strategy) == ("created", 3, 8, "AVG")
    [drift] = world.rows.drift
    assert (drift.topic, drift.verdict, drift.matching_library) == ("orders", "identical", "java:?")
    assert world.health.findings == ()
    assert (world.health.verdict, world.health.members, world.health.assigned_partitions) == ("identical", 3, 8)


def test_mixed_strategies_split_a_group_for_good() -> None:
    # Recipe A: AVG, AVG, AVG_BY_CIRCLE on 4 + 4 queues: a2, b1 are held twice, b2, b3 by nobody.
    world = World()
    world.join(Client(A), Client(B), Client(C, strategy=CIRCLE))
    world.rebalance()
    world.round(2)
    assert set(world.findings) == {"mixed_strategies"}
    world.round(OWNERS_MS // 10_000)
    assert set(world.findings) == {"mixed_strategies", "doubly_held", "held_by_nobody", "split_brain"}
    [drift] = world.rows.drift
    assert drift.verdict == "drifted"
    assert [(d.broker, d.partition, d.kind, d.actual) for d in drift.drifted_partitions] == [
        ("broker-a", 2, "doubly_assigned", (A, C)),
        ("broker-b", 1, "doubly_assigned", (B, C)),
        ("broker-b", 2, "unassigned", ()),
        ("broker-b", 3, "unassigned", ()),
    ]
    assert "members run different strategies (AVG, AVG_BY_CIRCLE)" in (drift.reason or "")


def test_a_broker_that_one_name_server_does_not_know_makes_owners_flip() -> None:
    # Recipe B: broker-b is registered with one of two name servers; C uses the other.
    world = three()
    world.routes["n2"] = {"orders": {"broker-a": 4}}
    for _ in range(5):
        world.rebalance(A, B, server="n1")
        world.rebalance(C, server="n2")
        world.round(2)
    assert {"route_differs", "split_brain"} <= set(world.findings)
    assert "n2 lacks brokers broker-b of orders" in world.findings["route_differs"].detail
    assert world.rows.rebalance_churn[0].causes[0].cause == "name_server_differs"


def test_a_member_that_tells_one_broker_only_makes_owners_flip() -> None:
    # Recipe C: D heartbeats to broker-a only. Who asks broker-a shares with D, who asks broker-b does not.
    world = three()
    ghost = Client("10.0.0.0@9", held={"orders": set()})
    world.clients[ghost.client_id] = ghost
    world.lists["broker-a"].append(ghost.client_id)
    for turn in range(8):
        world.rebalance(A, C, broker=("broker-a", "broker-b")[turn % 2])
        world.rebalance(B, broker=("broker-b", "broker-a")[turn % 2])
        world.round(2)
    assert {"member_lists_differ", "split_brain"} <= set(world.findings)
    assert "10.0.0.0@9 is not on the list of broker-b" in world.findings["member_lists_differ"].detail
    world.leave(ghost.client_id)
    world.rebalance()
    world.round(9)
    assert world.findings == {}
    assert world.health.verdict == "identical"


def test_lists_that_differ_are_told_before_an_owner_is_wrong() -> None:
    # Recipe D: C is cut off from broker-b; the first wrong owner comes 20.4 s later.
    world = three()
    world.lists["broker-b"].remove(C)
    world.round(2)
    assert set(world.findings) == {"member_lists_differ"}
    assert world.health.verdict == "identical"
    [row] = [row for row in world.rows.broker_members if row.broker == "broker-b"]
    assert (row.connections, row.missing) == (2, (C,))
    world.lists["broker-b"].append(C)
    world.round()
    assert world.findings == {}


def test_a_client_id_of_two_processes_leaves_its_second_share_to_nobody() -> None:
    # Recipe E: the list of each broker has A twice; the share of the second one, three queues, is nobody's.
    world = three()
    for listed in world.lists.values():
        listed.append(A)
    world.addresses[A] = ["10.0.0.1:1", "10.0.0.77:2"]
    world.rebalance()
    world.round(8)
    assert set(world.findings) == {"held_by_nobody"}
    world.round(8)
    assert set(world.findings) == {"duplicate_client_id", "held_by_nobody", "split_brain"}
    assert "two clients with one id, each connected and alive" in world.findings["duplicate_client_id"].detail
    assert "10.0.0.1:1, 10.0.0.77:2" in world.findings["duplicate_client_id"].detail
    [drift] = world.rows.drift
    assert [(d.broker, d.partition, d.kind) for d in drift.drifted_partitions] == [
        ("broker-a", 2, "unassigned"),
        ("broker-a", 3, "unassigned"),
    ]
    assert [cause.cause for cause in world.rows.rebalance_churn[0].causes] == ["member_lists_changed"]


@pytest.mark.parametrize(
    ("addresses", "rounds"),
    [
        # Seen with Java 5.5.0: two connections to one broker at the start; the broker gives the idle one up after
        # 120 s.
        ([["10.0.0.1:1", "10.0.0.1:2"]], 14),
        # A client that connects again and again.
        ([[f"10.0.0.1:{turn}", f"10.0.0.1:{turn + 1}"] for turn in range(10)], 6),
    ],
)
def test_two_connections_that_do_not_last_are_no_second_client(addresses: list[list[str]], rounds: int) -> None:
    world = three()
    listed = world.lists["broker-a"]
    assert listed is not None
    listed.append(A)
    for of_client in addresses:
        world.addresses[A] = of_client
        world.round(rounds)
    listed.remove(A)
    world.round(20)
    assert not [found for row in world.rows.group_health for found in row.findings]
