"""What each of RocketMQ's strategies would have given at a decision, by hand."""

from __future__ import annotations

import pytest

from streaming.groups import GroupConfig
from streaming.groups.context import Allocation
from streaming.groups.rows import WhatIfRow
from tests.groups.rocketmq.world import CIRCLE, TOPIC, A, B, Client, World


def group(config: GroupConfig | None = None, queues: int = 2) -> World:
    """A settled member with all queues of two brokers; another one joins."""
    world = World(config)
    world.routes["n1"][TOPIC] = {"broker-a": queues, "broker-b": queues}
    world.join(Client(A))
    world.settle()
    world.join(Client(B))
    world.rebalance()
    return world


def told(world: World) -> dict[str, WhatIfRow]:
    return {row.strategy: row for row in world.rows.what_if}


def test_each_strategy_is_told_with_what_it_would_have_moved() -> None:
    world = group()
    world.round(2)
    rows = told(world)
    assert set(rows) == {
        "AVG",
        "AVG_BY_CIRCLE",
        "CONFIG",
        "CONSISTENT_HASH",
        "MACHINE_ROOM",
        "MACHINE_ROOM_NEARBY-AVG",
    }
    # A had a0, a1, b0 and b1. AVG gives it a0 and a1, AVG_BY_CIRCLE a0 and b0: two queues move either way.
    for name, runs in (("AVG", True), ("AVG_BY_CIRCLE", False)):
        row = rows[name]
        assert (row.runs, row.partitions_moved, row.partitions_moved_optimal) == (runs, 2, 2)
        assert (row.imbalance, row.imbalance_optimal, row.reason) == (0.0, 0.0, None)
    # Configuration that is missing is named, but CONSISTENT_HASH has its default of 10 virtual nodes.
    assert rows["CONFIG"].reason == "the queue list of CONFIG is not configured"
    assert rows["MACHINE_ROOM"].reason == "the rooms of MACHINE_ROOM are not configured"
    assert rows["MACHINE_ROOM_NEARBY-AVG"].reason == "the rule for rooms of MACHINE_ROOM_NEARBY is not configured"
    assert rows["CONSISTENT_HASH"].reason is None
    assert {row.round for row in rows.values()} == {world.number}
    assert all(row.partitions_moved is None for row in rows.values() if row.reason is not None)


def test_a_strategy_that_runs_and_is_not_among_the_six_is_told_of_as_well() -> None:
    world = group(GroupConfig("test", allocation=lambda _: Allocation(room_separator="@", nearby_delegate="AVG")))
    for client in world.clients.values():
        client.strategy = "com.acme.Mine"
    world.round(9)
    rows = told(world)
    assert len(rows) == 7
    assert rows["com.acme.Mine"].runs is True
    assert rows["com.acme.Mine"].partitions_moved is None
    assert rows["AVG"].runs is False
    assert rows["AVG"].partitions_moved == 2


@pytest.mark.parametrize(
    ("before", "after", "moved", "imbalance"),
    [
        # A had a0 to a3, and B b0 to b2. Of the five that are left, AVG gives A a0, a1 and b0, AVG_BY_CIRCLE a0, b0
        # and b2.
        ({"broker-a": 4, "broker-b": 3}, {"broker-a": 2, "broker-b": 3}, (1, 3), 3 / 2.5 - 1),
        # A had a0 to a2 and b0, B the rest. Of the three that are left, AVG gives B a2, AVG_BY_CIRCLE a1.
        ({"broker-a": 3, "broker-b": 4}, {"broker-a": 3}, (1, 1), 2 / 1.5 - 1),
    ],
)
def test_queues_that_have_left_the_routes_are_dealt_to_nobody(
    before: dict[str, int], after: dict[str, int], moved: tuple[int, int], imbalance: float
) -> None:
    world = World()
    world.routes["n1"][TOPIC] = before
    world.join(Client(A), Client(B))
    world.settle()
    world.routes["n1"][TOPIC] = after
    world.rebalance()
    world.round(9)
    rows = [told(world)[name] for name in ("AVG", "AVG_BY_CIRCLE")]
    assert tuple(row.partitions_moved for row in rows) == moved
    assert [row.imbalance for row in rows] == [pytest.approx(imbalance)] * 2


def test_queues_are_weighed_by_what_arrived_in_them() -> None:
    world = World(GroupConfig("test", heartbeat_ms=60_000))
    world.routes["n1"][TOPIC] = {"broker-a": 2, "broker-b": 2}
    world.join(Client(A))
    world.settle()
    # Per round 30 messages in a0, 10 in each of the others.
    for turn in range(1, 16):
        for broker, queue, rate in (("broker-a", 0, 30), ("broker-a", 1, 10), ("broker-b", 0, 10), ("broker-b", 1, 10)):
            world.consume(TOPIC, broker, queue, end=turn * rate, committed=turn * rate)
        world.round()
    world.join(Client(B))
    world.rebalance()
    world.round(2)
    rows = told(world)
    # AVG: 40 and 20; AVG_BY_CIRCLE (a0, b0 and a1, b1): the same. A queue of 30 and the others are even: 30 and 30.
    for name in ("AVG", "AVG_BY_CIRCLE"):
        assert rows[name].load_imbalance == pytest.approx(1 / 3)


def test_a_decision_larger_than_the_setting_gets_one_row_with_the_reason_and_0_turns_it_off() -> None:
    found = {size: group(GroupConfig("test", what_if_max_size=size)).round(2).what_if for size in (0, 7, 8)}
    assert {size: len(rows) for size, rows in found.items()} == {0: 0, 7: 1, 8: 6}
    [row] = found[7]
    assert (row.strategy, row.runs) == ("AVG", True)
    assert (row.reason or "").startswith("4 partitions times 2 members are more than what_if_max_size (7)")


def test_an_empty_group_has_no_what_ifs() -> None:
    world = group()
    world.round(2)
    world.leave(A)
    world.leave(B)
    assert world.round(9).what_if == []


def test_a_group_whose_topics_have_no_queues_says_so() -> None:
    world = group()
    world.round(2)
    del world.routes["n1"][TOPIC]
    world.routes["n1"][TOPIC] = {"broker-a": 0}
    for client in world.clients.values():
        client.held[TOPIC] = set()
    [row] = world.round(9).what_if
    assert row.reason == "its topics have no queues that can be read"


def test_where_nobody_knows_what_members_held_before_nothing_is_said_of_moves() -> None:
    world = World()
    world.join(Client(A), Client(B, strategy=CIRCLE))
    world.rebalance()
    world.round(9)
    rows = told(world)
    assert {row.partitions_moved for row in rows.values()} == {None}
    assert rows["AVG"].imbalance == 0.0
    # As many run AVG as AVG_BY_CIRCLE: the first by name stands for the group.
    assert (rows["AVG"].runs, rows["AVG_BY_CIRCLE"].runs) == (True, False)
