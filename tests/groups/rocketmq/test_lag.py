"""What is known of a queue's lag without a commit, and without the commits of a round."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig, advance
from streaming.groups.rows import HotPartition, Rows
from streaming.records import BROADCASTING, CLUSTERING, QueuesSeen, RocketMQObservation
from tests.groups.rocketmq.world import GROUP, SECOND, TOPIC, A, B, Client, World, group


def lag_of(rows: Rows) -> dict[tuple[str, int], tuple[int | None, str, str | None, int | None]]:
    """Lag, status, reason and committed offset in the newest row of each queue of broker-a."""
    return {
        (row.topic, row.partition): (row.lag, row.lag_status, row.reason, row.committed_offset)
        for row in rows.lag
        if row.broker == "broker-a"
    }


def test_an_empty_queue_has_no_lag_whether_or_not_anything_was_committed() -> None:
    world = group()
    world.consume(TOPIC, "broker-a", 1, end=5, committed=5)
    world.round(3)
    assert lag_of(world.rows) == {
        (TOPIC, 0): (0, "ok", None, None),
        (TOPIC, 1): (0, "ok", None, 5),
        (TOPIC, 2): (0, "ok", None, None),
        (TOPIC, 3): (0, "ok", None, None),
    }
    assert (world.health.lag_total, world.health.lag_unknown, world.health.lag_status) == (0, 0, "ok")


def test_where_a_group_begins_in_a_queue_with_messages_is_not_known_before_it_commits() -> None:
    world = group()
    world.round(2)
    world.consume(TOPIC, "broker-a", 0, end=7, committed=-1)
    world.round(2)
    assert lag_of(world.rows)[TOPIC, 0] == (None, "no_commit", "no_commit", None)
    world.consume(TOPIC, "broker-a", 0, end=7, committed=3)
    world.round(2)
    assert lag_of(world.rows)[TOPIC, 0] == (4, "ok", None, 3)


def test_a_group_of_members_that_keep_their_offsets_themselves_has_no_lag_that_anybody_knows() -> None:
    world = group()
    for client in world.clients.values():
        client.more["message_model"] = BROADCASTING
    world.consume(TOPIC, "broker-a", 0, end=7, committed=-1)
    world.round(2)
    assert {said[1:3] for said in lag_of(world.rows).values()} == {("no_commit", "kept_by_members")}


def test_topics_are_counted_by_name_on_however_many_brokers_they_are() -> None:
    world = group()
    world.round(2)
    assert world.health.topics == 1
    world = World()
    world.routes["n1"]["payments"] = {"broker-a": 1}
    world.join(Client(A, topics=(TOPIC, "payments")))
    world.rebalance()
    world.consume("payments", "broker-a", 0, end=7, committed=7)
    world.round(2)
    assert world.health.topics == 2


def deleted_topic() -> World:
    """A group that has consumed two topics, one of which was deleted then; a round is ten minutes."""
    world = World(interval=600 * SECOND)
    world.routes["n1"]["gone"] = {"broker-a": 1}
    world.join(Client(A, topics=(TOPIC, "gone")))
    world.consume("gone", "broker-a", 0, end=7, committed=5)
    world.rebalance()
    world.round(2)
    del world.routes["n1"]["gone"], world.clients[A].held["gone"]
    world.clients[A].topics = (TOPIC,)
    return world


def test_the_queues_of_a_deleted_topic_end_after_a_day_without_a_deleted_offset() -> None:
    world = deleted_topic()
    rows = world.round(144)
    assert {row.ended for row in rows.lag if row.topic == "gone"} == {False}
    [row] = [row for row in world.round(1).lag if row.topic == "gone"]
    assert (row.broker, row.partition, row.ended, row.offset_deleted) == ("broker-a", 0, True, False)
    assert not [row for row in world.round(20).lag if row.topic == "gone"]
    assert world.findings == {}
    assert sorted(world.state.partitions) == [f"{TOPIC}\0@\0broker-a", f"{TOPIC}\0@\0broker-b"]


def test_a_topic_that_any_server_names_within_the_day_keeps_its_queues() -> None:
    world = deleted_topic()
    world.round(140)
    world.routes["n1"]["gone"] = {"broker-a": 1}
    world.round()
    del world.routes["n1"]["gone"]
    rows = world.round(144)
    assert {row.ended for row in rows.lag if row.topic == "gone"} == {False}


def test_a_topic_that_did_not_fit_into_the_event_keeps_its_queues() -> None:
    world = deleted_topic()
    world.round_more["cut"] = ("topics",)
    rows = world.round(300)
    assert {row.ended for row in rows.lag if row.topic == "gone"} == {False}


def test_the_queues_of_a_silent_broker_do_not_end() -> None:
    world = deleted_topic()
    world.routes["n1"]["gone"] = {"broker-a": 1}
    world.lists["broker-a"] = None
    rows = world.round(300)
    assert {(row.ended, row.committed_offset) for row in rows.lag if row.topic == "gone"} == {(False, 5)}


def changed(seen: RocketMQObservation, **more: object) -> RocketMQObservation:
    """The same with other values of broker-a's queues."""

    def queues(of: QueuesSeen) -> QueuesSeen:
        return msgspec.structs.replace(of, **more) if of.broker == "broker-a" else of

    topics = tuple(msgspec.structs.replace(one, queues=tuple(queues(of) for of in one.queues)) for one in seen.topics)
    return msgspec.structs.replace(seen, topics=topics)


def test_a_queue_whose_messages_have_all_expired_has_no_lag() -> None:
    world = group()
    seen = [changed(world.observation(), min=(100,) * 4, max=(100,) * 4) for _ in range(2)]
    _, rows = advance(None, GROUP, seen, world.config)
    assert lag_of(rows)[TOPIC, 0] == (0, "ok", None, None)


def test_ends_without_the_commits_of_the_same_round_give_no_lag() -> None:
    world = group()
    for queue in range(4):
        world.consume(TOPIC, "broker-a", queue, end=5, committed=5)
    world.round(2)
    # 1,000 more messages were sent and consumed, and the broker told the ends alone.
    state = world.state
    for _ in range(20):
        seen = changed(world.observation(), max=(1_005,) * 4, committed=None)
        state, rows = advance(state, GROUP, [seen], world.config)
        assert {said[:3] for said in lag_of(rows).values()} <= {(None, "unknown", "commits_not_told")}
    for queue in range(4):
        world.consume(TOPIC, "broker-a", queue, end=1_005, committed=1_005)
    state, rows = advance(state, GROUP, [world.observation()], world.config)
    assert {said[:3] for said in lag_of(rows).values()} == {(0, "ok", None)}
    assert rows.group_health[-1].findings == ()


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
    world = group(Client(A, more={"message_model": model}))
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
    world = group(Client(A), Client(B))
    world.clients[B].held[TOPIC] |= {("broker-a", 0), ("broker-a", 1)}
    world.round(2)
    assert world.health.assigned_partitions == 8
