"""The ways to a split brain that were seen on a real cluster (5.5.0), as sequences of what each round sees."""

from __future__ import annotations

from streaming.groups.rocketmq.owners import OWNERS_MS
from tests.groups.rocketmq.world import AVG, CIRCLE, A, B, C, Client, World, three


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


def test_a_spare_connection_of_a_client_that_has_just_started_is_no_second_client() -> None:
    # Seen with Java 5.5.0: two connections to one broker at the start; the broker gives the idle one up after 120 s.
    world = three()
    listed = world.lists["broker-a"]
    assert listed is not None
    listed.append(A)
    world.addresses[A] = ["10.0.0.1:1", "10.0.0.1:2"]
    world.round(14)
    listed.remove(A)
    world.round(20)
    assert not [found for row in world.rows.group_health for found in row.findings]


def test_a_client_that_connects_again_and_again_is_no_second_client() -> None:
    world = three()
    listed = world.lists["broker-a"]
    assert listed is not None
    listed.append(A)
    for turn in range(10):
        world.addresses[A] = [f"10.0.0.1:{turn}", f"10.0.0.1:{turn + 1}"]
        world.round(6)
    assert not [found for row in world.rows.group_health for found in row.findings]


def test_avg_is_the_strategy_of_a_class_name() -> None:
    assert AVG.endswith("AllocateMessageQueueAveragely")
