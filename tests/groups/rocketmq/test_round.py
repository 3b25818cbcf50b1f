"""What the rooms of any group say of a RocketMQ group: by topic and broker, with its own source."""

from __future__ import annotations

import pytest

from streaming.groups import GroupConfig
from streaming.groups.rows import HotPartition
from streaming.records import BROADCASTING, CLUSTERING
from tests.groups.rocketmq.world import SECOND, TOPIC, A, B, Client, World


def busy(rounds: int, *, committed: int) -> World:
    """1,000 messages arrive in a0 between two rounds, one in each other queue; of a0 the group reads the first."""
    world = World(GroupConfig("test", heartbeat_ms=60_000))
    world.join(Client(A), Client(B))
    world.settle()
    for turn in range(1, rounds + 1):
        for broker in ("broker-a", "broker-b"):
            for queue in range(4):
                world.consume(TOPIC, broker, queue, end=turn, committed=turn)
        world.consume(TOPIC, "broker-a", 0, end=1_000 * turn, committed=min(1_000 * turn, committed))
        world.round()
    return world


def test_the_places_in_the_health_of_a_group_are_named_for_people() -> None:
    world = busy(30, committed=10_000)
    assert (world.health.time_behind_topic, world.health.time_behind_partition) == (f"{TOPIC}@broker-a", 0)
    # 1,000 in ten seconds, of 1,007 in all.
    assert world.health.hot_partitions == (HotPartition(f"{TOPIC}@broker-a", 0, 100.0),)
    assert {row.source for row in world.rows.group_health} == {"rocketmq"}
    assert {row.log_partition for row in world.rows.group_health} == {None}
    assert {row.source for row in world.rows.lag} == {"rocketmq"}
    assert {(row.broker, row.commits) for row in world.rows.lag} == {("broker-a", None), ("broker-b", None)}


def test_the_load_of_each_member_is_that_of_its_queues() -> None:
    world = busy(30, committed=10_000)
    newest = {row.member_id: row for row in world.rows.member_load}
    # AVG: A has broker-a's four queues, B broker-b's.
    assert {name: (row.source, row.partitions, row.produced_per_second) for name, row in newest.items()} == {
        A: ("rocketmq", 4, pytest.approx(100.3)),
        B: ("rocketmq", 4, pytest.approx(0.4)),
    }


def test_an_offset_that_goes_back_is_a_finding_with_its_place() -> None:
    world = busy(30, committed=10_000)
    world.consume(TOPIC, "broker-a", 0, end=31_000, committed=2_000)
    world.round()
    assert world.findings["rewound"].detail.startswith(f"committed offsets went back: {TOPIC}@broker-a ")


@pytest.mark.parametrize(("model", "findings"), [(CLUSTERING, {"never_committed"}), (BROADCASTING, set())])
def test_members_that_never_commit_are_told_of_unless_they_keep_offsets_themselves(
    model: str, findings: set[str]
) -> None:
    world = World()
    world.join(Client(A, more={"message_model": model}))
    world.rebalance()
    for turn in range(1, 122):
        world.consume(TOPIC, "broker-a", 0, end=100 * turn, committed=-1)
        world.interval = 10 * SECOND
        world.round()
    assert set(world.findings) == findings


def test_a_waiting_decision_is_pending_and_a_group_known_by_its_offsets_alone_has_nothing_to_judge() -> None:
    world = World()
    world.consume(TOPIC, "broker-a", 0, end=7, committed=7)
    world.round()
    assert (world.health.state, world.health.verdict) == ("Empty", "not_applicable")
    assert (world.health.verdict_reason, world.health.members) == ("the group has no members", 0)
    assert (world.health.incarnation, world.health.last_decision_time) == (None, None)
    assert world.health.drifted_count == 0
    world.join(Client(A))
    world.round()
    assert (world.health.verdict, world.health.verdict_reason) == (
        "pending",
        "a change reaches all members within a minute: it is judged then",
    )
    world.rebalance()
    world.round(2)
    assert (world.health.state, world.health.verdict, world.health.incarnation) == ("Stable", "identical", 30)


def test_two_members_that_hold_one_queue_have_assigned_it_once() -> None:
    world = World()
    world.join(Client(A), Client(B))
    world.rebalance()
    world.clients[B].held[TOPIC] |= {("broker-a", 0), ("broker-a", 1)}
    world.round(2)
    assert world.health.assigned_partitions == 8


def test_views_are_calm_since_the_first_round_with_the_lists_and_routes_of_the_newest_one() -> None:
    world = World()
    world.join(Client(A))
    world.rebalance()
    since = []
    for change in (None, "route", None, "list", None):
        if change == "route":
            world.routes["n1"]["payments"] = {"broker-a": 1}
        elif change == "list":
            world.join(Client(B))
        world.round()
        assert world.state is not None
        assert world.state.rocketmq is not None
        since.append(world.state.rocketmq.calm_since // SECOND)
    assert since == [10, 20, 20, 40, 40]
