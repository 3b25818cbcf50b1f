"""When a group has decided again, and what its rows say of it."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig
from streaming.groups.context import Incarnations
from streaming.groups.rows import ChurnRow, Rows, TopicAssignment
from streaming.records import RocketMQObservation
from tests.groups.rocketmq.world import (
    CIRCLE,
    INTERVAL,
    RETRY,
    SECOND,
    START,
    TOPIC,
    A,
    B,
    C,
    Client,
    D,
    World,
    group,
    three,
)


def decisions(rows: Rows) -> list[tuple[int, str, int, int]]:
    """Number, kind, members and queues of each."""
    return [(row.decision, row.kind, row.members, row.partitions) for row in rows.rebalance_churn]


def test_the_first_round_of_two_that_show_the_same_is_the_decision() -> None:
    world = World()
    world.join(Client(A), Client(B))
    world.round()
    world.rebalance()
    world.round()
    assert decisions(world.rows) == []
    world.round()
    assert decisions(world.rows) == [(20, "created", 2, 8)]
    [created] = world.rows.rebalance_churn
    assert (created.joined, created.left, created.causes) == (None, (), ())
    assert (created.partitions_moved, created.partitions_moved_optimal) == (None, None)
    assert (created.strategy, created.incarnation) == ("AVG", 20)


def test_a_decision_was_made_between_two_looks() -> None:
    world = group(Client(A))
    world.round(2)
    [created] = world.rows.rebalance_churn
    # Nobody looked before the first round. (A round is closed half a second after its time.)
    assert (created.record_time, created.decided_time_min) == (START + 10 * SECOND, None)
    assert created.decided_time_max == START + 10 * SECOND + 500
    world.join(Client(B))
    world.rebalance()
    [row] = world.round(2).rebalance_churn
    assert (row.record_time, row.decided_time_min) == (START + 30 * SECOND, START + 20 * SECOND)
    assert row.decided_time_max == START + 30 * SECOND + 500


@pytest.mark.parametrize(
    ("back_ms", "least"), [(10_499, 20 * SECOND), (10_500, 20 * SECOND), (10_501, None)], ids=("before", "at", "after")
)
def test_no_decision_was_made_later_than_the_round_that_shows_it_closed(back_ms: int, least: int | None) -> None:
    world = group(Client(A))
    world.round(2)
    world.join(Client(B))
    world.rebalance()
    seen = world.observation

    def behind() -> RocketMQObservation:
        """A round by the clock that has been set back since the last one, at 20 s; it closes 0.5 s after its time."""
        now = seen()
        return msgspec.structs.replace(now, time=now.time - back_ms, closed=now.closed - back_ms)

    world.observation = behind  # type: ignore[method-assign]
    [row] = world.round(2).rebalance_churn
    assert row.decided_time_max == START + 30 * SECOND + 500 - back_ms
    assert row.decided_time_min == (None if least is None else START + least)


def test_a_member_that_joins_takes_its_share_by_moves_that_are_counted() -> None:
    world = three()
    world.join(Client(D))
    world.rebalance()
    [row] = world.round(2).rebalance_churn
    # AVG of 8 queues: 3, 3 and 2 become 2 each: a2, b0, b1, b2 and b3 move. Two for the new one would have been enough.
    assert (row.kind, row.joined, row.left) == ("rebalance", (D,), ())
    assert (row.members, row.partitions) == (4, 8)
    assert (row.partitions_moved, row.partitions_moved_optimal) == (5, 2)
    assert (world.health.members, world.health.assigned_partitions) == (4, 8)
    assert (world.health.imbalance, world.health.imbalance_optimal) == (0.0, 0.0)


def test_three_of_eight_queues_are_an_eighth_more_than_the_mean() -> None:
    world = three()
    assert (world.health.imbalance, world.health.imbalance_optimal) == (0.125, 0.125)
    # A holds 6 of 8: 6 / (8 / 3) is 2.25.
    world.clients[A].held[TOPIC] |= world.clients[B].held[TOPIC]
    world.clients[B].held[TOPIC] = set()
    world.round(2)
    assert (world.health.imbalance, world.health.imbalance_optimal) == (1.25, 0.125)


def test_the_last_member_that_leaves_empties_the_group_and_the_next_one_begins_with_all_queues() -> None:
    world = three()
    incarnation = world.health.incarnation
    for name in (A, B, C):
        world.leave(name)
    [row] = world.round(2).rebalance_churn
    assert (row.kind, row.members, row.partitions, row.left) == ("became_empty", 0, 0, (A, B, C))
    assert (row.strategy, row.partitions_moved_optimal) == (None, None)
    assert (world.health.state, world.health.verdict) == ("Empty", "not_applicable")
    assert [(member.member_id, member.ended, member.partition_count) for member in world.rows.members] == [
        (A, True, 0),
        (B, True, 0),
        (C, True, 0),
    ]
    world.join(Client(D))
    world.rebalance()
    [row] = world.round(2).rebalance_churn
    assert (row.kind, row.joined, row.left, row.incarnation) == ("rebalance", (D,), (), incarnation)
    assert row.partitions_moved == 0


def test_a_change_that_goes_back_at_the_next_round_was_none() -> None:
    world = three()
    world.leave(C)
    world.round()
    assert world.health.verdict == "identical"
    world.join(Client(C, held={TOPIC: {("broker-b", 2), ("broker-b", 3)}}))
    world.round(3)
    assert decisions(world.rows) == []


def restless(world: World, seconds: int) -> Rows:
    """Let a queue go from one member to another at each round, ten seconds apart."""
    rows = Rows()
    for turn in range(seconds // 10):
        for client in world.clients.values():
            client.held[TOPIC] -= {("broker-a", 0)}
        world.clients[(B, C)[turn % 2]].held[TOPIC] |= {("broker-a", 0)}
        rows.rebalance_churn += world.round().rebalance_churn
    return rows


def test_a_change_that_does_not_come_to_rest_counts_after_60_s_as_it_is_then() -> None:
    # B takes it at once; the last round is the seventh, 60 s later.
    world = three()
    assert decisions(restless(world, 60)) == []
    world = three()
    [row] = restless(world, 70).rebalance_churn
    assert (row.decision, row.kind) == (10 * (9 + 7), "rebalance")
    assert row.decided_time_min == START + (90 + 60) * SECOND


def test_a_change_begins_anew_after_a_round_that_shows_none() -> None:
    world = three()
    held = {name: set(client.held[TOPIC]) for name, client in world.clients.items()}
    restless(world, 50)
    for name, client in world.clients.items():
        client.held[TOPIC] = set(held[name])
    world.round()
    assert decisions(restless(world, 60)) == []


def test_a_decision_that_another_one_overtakes_before_its_verdict_is_unverified() -> None:
    world = three()
    world.clients[A].held[TOPIC] |= {("broker-b", 3)}
    [first] = world.round(3).rebalance_churn
    assert (world.health.verdict, world.rows.drift) == ("pending", [])
    world.clients[B].held[TOPIC] |= {("broker-b", 3)}
    [second] = world.round(2).rebalance_churn
    [drift] = world.rows.drift
    assert (drift.decision, drift.topic, drift.verdict) == (first.decision, TOPIC, "unverified")
    assert drift.reason == "the group decided again before it had come to rest"
    assert drift.incarnation == first.incarnation
    world.round(6)
    assert [(row.decision, row.verdict) for row in world.rows.drift[1:]] == [(second.decision, "drifted")]


def test_a_decision_whose_group_is_deleted_before_its_verdict_is_unverified() -> None:
    world = three()
    world.clients[A].held[TOPIC] |= {("broker-b", 3)}
    world.round(3)
    world.round_more["gone"] = "deleted"
    rows = world.round()
    assert [(row.topic, row.verdict) for row in rows.drift] == [(TOPIC, "unverified")]
    assert [(row.member_id, row.ended) for row in rows.members] == [(A, True), (B, True), (C, True)]
    assert [row.ended for row in rows.group_health] == [True]
    assert world.state is None


def test_a_judged_group_that_is_deleted_gets_no_other_verdict() -> None:
    world = three()
    for queue in range(4):
        world.consume(TOPIC, "broker-a", queue, end=5, committed=5)
    world.round()
    world.round_more["gone"] = "deleted"
    rows = world.round()
    assert rows.drift == []
    ended = [(row.topic, row.broker, row.partition, row.source) for row in rows.lag if row.ended]
    assert ended == [(TOPIC, broker, queue, "rocketmq") for broker in ("broker-a", "broker-b") for queue in range(4)]


def test_six_decisions_within_ten_minutes_after_quiet_days_are_a_storm() -> None:
    world = three()
    for _ in range(2):
        world.interval = 24 * 3_600 * SECOND
        world.round()
        world.interval = INTERVAL
        world.clients[A].started += 1
        world.round(2)
    world.interval = 24 * 3_600 * SECOND
    world.round()
    world.interval = INTERVAL
    for _ in range(5):
        world.clients[A].started += 1
        world.round(2)
    assert "rebalance_storm" not in world.findings
    world.clients[A].started += 1
    world.round(2)
    assert "rebalance_storm" in world.findings


def created_at(decision: int, known: tuple[int, int]) -> ChurnRow:
    world = World(GroupConfig("test", incarnations=Incarnations({"billing": [known]})))
    world.number = decision - 10
    world.join(Client(A))
    world.rebalance()
    return world.round(2).rebalance_churn[0]


@pytest.mark.parametrize(("known", "incarnation"), [((300, 900), 300), ((300, 490), 500)])
def test_a_group_whose_state_was_lost_goes_on_with_the_incarnation_that_the_tables_know(
    known: tuple[int, int], incarnation: int
) -> None:
    assert created_at(500, known).incarnation == incarnation


def test_a_strategy_is_that_of_most_members_and_the_first_by_name_where_as_many_run_two() -> None:
    for others, strategy in (((CIRCLE, CIRCLE), "AVG_BY_CIRCLE"), ((CIRCLE,), "AVG"), ((None, None), "AVG")):
        world = group(Client(A), *(Client(name, strategy=of) for name, of in zip((B, C), others, strict=False)))
        assert world.round(2).rebalance_churn[0].strategy == strategy


@pytest.mark.parametrize(
    ("addresses", "hosts"),
    [
        (["10.0.0.1:1", "10.0.0.1:2"], "10.0.0.1"),
        (["10.0.0.2:1", "10.0.0.1:2"], "10.0.0.1, 10.0.0.2"),
        ([f"10.0.0.{n}:1" for n in (3, 2, 1)], "10.0.0.1, 10.0.0.2, 10.0.0.3"),
        ([f"10.0.0.{n}:1" for n in (3, 2, 1, 4)], "10.0.0.1, 10.0.0.2, 10.0.0.3"),
        (["[::1]:40000"], "[::1]"),
    ],
)
def test_a_member_has_the_first_hosts_of_its_connections(addresses: list[str], hosts: str) -> None:
    world = World()
    for listed in world.lists.values():
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
