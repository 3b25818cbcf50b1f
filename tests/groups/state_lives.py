"""Lives of groups that lead to the golden states: between them they fill every field that a state can hold.

The module is long because each kind of group has a life, and each life says what it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streaming.groups.classic.state import NextOwner, OpenCost, RebalanceRounds, RoundSpan
from streaming.groups.rows import ChurnRow, ReplacedMember
from streaming.groups.state import SeenState
from streaming.records import (
    BROKERS,
    STATE_LOG,
    STREAMS,
    TIMEOUT,
    Compacted,
    Configured,
    CurrentAssignment,
    GroupEpoch,
    GroupInput,
    InternalTopics,
    KnownTopics,
    ModernMember,
    SeenClassic,
    SeenMember,
    SeenModern,
    SeenShares,
    SharePartition,
    StreamsTopology,
    SubscriptionSeen,
    TargetAssignment,
    TargetEpoch,
    TopicObservation,
    UnreadableMembership,
    UnreadableModern,
)
from tests.groups.build import (
    GROUP,
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_commits,
    make_cooperative,
    make_look,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import TOPIC_ID, epoch, gone, metadata, owns, read, stands, target
from tests.groups.rocketmq.world import A, B, C, three
from tests.groups.share import share_log
from tests.offsets_log.written import current_assignment, member_metadata, other_key, regular_expression, target_epoch

__all__ = ["STATES"]

RACKS = (("r1", "r2"), ("r2",)) * 2


def cooperative() -> Life:
    life = Life.after(
        make_cooperative(5, 1, a=(0, 1)), *_commits(0, (6, 10), (8, 20)), make_commit(9, 5, topic="x", partition=1)
    )
    life.take(
        make_observation(20, make_topic("x", 2)),
        make_commit(25, 30, topic="x"),
        make_observation(30, make_topic("x", 2)),
    )
    life.take(
        make_cooperative(35, 2, a=(0,), b=()),
        make_observation(40, make_topic("x", 2)),
        make_cooperative(45, 3, a=(0,), b=(1,)),
    )
    life.take(make_commits(50, 31, 33, 29, topic="x"))
    return life


def drifted() -> Life:
    life = Life()
    topic = make_topic("orders", 4, end=110)
    first = [msgspec.structs.replace(m, group_instance_id=f"i-{m.member_id}") for m in even("orders", 4, "a", "b")]
    life.take(make_record(5, first), *_commits_of_all(6, 50), make_observation(10, topic))
    back = make_member("a2", assigned={"orders": range(4)}, group_instance_id="i-a")
    life.take(make_record(20, (back, make_member("b")), generation=2), make_commit(25, 50, partition=2))
    life.take(
        make_observation(30, topic),
        make_commit(35, 60),
        make_observation(40, topic),
        make_commit(50, 60),
        make_observation(55, topic),
    )
    return life


def pending_handover() -> Life:
    life = Life.after(make_cooperative(5, 1, a=(0, 1)), make_observation(10, make_topic("x", 2)))
    life.take(make_cooperative(15, 2, a=(0,), b=()), make_observation(20, make_topic("x", 3)))
    return life


def stopping() -> Life:
    life = Life()
    for at in range(10, 301, 10):
        commits = [make_commit(at, at - 10, topic="x")] if at <= 200 else []
        # The clock of its newest round was wrong, and before that it was not observed for a while.
        told = {"elapsed": (at + 1) * SECOND, "time": START + (at + 1 if at < 290 else at + 9_000) * SECOND}
        if at < 300:
            life.take(*commits, make_observation(at + 1, make_topic("x", 1, end=at - 5 if at <= 200 else at), **told))
    return life


def growing() -> Life:
    life = Life.after(make_commit(5, 900, topic="x"), make_observation(9, make_topic("x", 1, end=1_000)))
    life.take(make_commit(10, 100, topic="x"), make_observation(19, make_topic("x", 1, end=1_000)))
    for at in range(20, 80, 10):
        topic = make_topic("x", 1, end=1_000 + 3 * at, log_start_offsets=_packed(7))
        commits = [make_commit(at, 100 + max(at, 40), topic="x")] if at != 60 else []
        life.take(*commits, make_observation(at + 9, topic, idle=at == 70))
    life.take(make_commit(81, 90, topic="x"), make_commits(82, 5, None, topic="x", partition=1), make_record(90))
    return life


def classic() -> Life:
    life = Life()
    topic = make_topic("orders", 4, topic_id=TOPIC_ID, racks=RACKS)
    life.take(make_record(5, [_racked("a", (0, 1, 2, 3), (), None)], generation=2, protocol="cooperative-sticky"))
    life.take(make_observation(10, topic))
    before = _racked("a", (0, 1), (0, 1, 2, 3), 2), _racked("b", (), (), None, user_data=None)
    life.take(make_record(20, before, generation=3, protocol="cooperative-sticky"))
    given = _racked("a", (0, 1), (0, 1), 3), _racked("b", (2, 3), (), None, user_data=None)
    life.take(make_record(30, given, generation=4, protocol="cooperative-sticky"))
    moved = _racked("a", (0,), (0, 1), 4), _racked("b", (2, 3, 1), (2, 3), 4)
    life.take(make_record(35, moved, generation=5, protocol="cooperative-sticky"))
    life.take(Compacted(36, 61), make_tombstone(37))
    return life


def consumer() -> Life:
    life = Life.after(*_commits(0, (3, 500)), make_commit(4, 400, partition=1))
    life.take(*(make_commit(5 + p, 40, topic="bills", partition=p) for p in (0, 1, 2)))
    orders, bills = _orders(1_000, RACKS), make_topic("bills", 3, topic_id="first")
    life.take(make_observation(9, orders, bills, state=None, group_type="consumer"))
    life.take(*read([metadata("a", "i"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)]))
    late = msgspec.structs.replace(make_commit(18, 30, topic="bills", partition=1), topic_id="first")
    life.take(make_commit(15, 600, partition=2), make_commit(17, 610, partition=3), late)
    other = make_topic("bills", 2, topic_id="second")
    life.take(make_observation(19, _orders(1_100, (("r1",), ("r2",)) * 2), other, state=None, group_type="consumer"))
    life.take(*read([_resolving("b"), epoch(2), target("a", 0, 1), target("b", 2, 3), stands(2)], 21))
    told = other_key(8, GROUP, "a"), current_assignment(1, {TOPIC: (0, 1)}, state=1, revoking={TOPIC: (2, 3)})
    life.take(
        *read([told], 26), make_commit(27, 620, partition=2), make_commit(28, 450), make_commit(29, None, partition=1)
    )
    life.take(make_observation(30, _orders(1_200, (("r1",), ("r2",)) * 2), other, state=None, group_type="consumer"))
    life.take(*read([owns("a", 2, 0, 1)], 31), *read([owns("b", 2, 2)], 32), make_commit(36, 660, partition=2))
    life.take(make_observation(38, _orders(1_200, (("r1",), ("r2",)) * 2), other, state=None, group_type="consumer"))
    life.take(*read([owns("b", 2, 2, 3)], 39), *read([metadata("c"), epoch(3), target("c", 3)], 40))
    windows = make_commits(43, 680, 670, partition=2)
    life.take(msgspec.structs.replace(windows, topic_id=TOPIC_ID))
    return life


def upgrading() -> Life:
    life = Life.after(
        make_record(5, even("orders", 4, "a", "b"), generation=3), make_observation(6, _orders(100)), make_tombstone(9)
    )
    life.take(*read([_carried("a"), _carried("b"), epoch(3), target("a", 0, 1), target("b", 2, 3)], 10))
    return life


def joined() -> Life:
    life = upgrading()
    life.take(*read([stands(3), owns("a", 3, 0, 1), owns("b", 3, 2, 3)], 15))
    asks = other_key(5, GROUP, "n"), member_metadata([], regex="ord.*", rack="r1")
    resolved = other_key(16, GROUP, "ord.*"), regular_expression(["orders"], 7, START)
    decided = other_key(6, GROUP), target_epoch(4, START + 25 * SECOND)
    told = other_key(8, GROUP, "b"), current_assignment(3, {TOPIC: (2,)}, state=1, revoking={TOPIC: (3,)})
    targets = [target("a", 0), target("b", 2), target("n", 1, 3)]
    life.take(*read([asks, resolved, epoch(4), *targets, decided, owns("a", 4, 0), told], 20))
    return life


def ending() -> Life:
    life = upgrading()
    life.take(*read([stands(3), owns("a", 3, 0, 1), owns("b", 3, 2, 3)], 15))
    life.take(*read([metadata("n"), epoch(4), target("b", 2), target("n", 3), stands(4), owns("b", 4, 2)], 18))
    life.take(*_ends(24, "a", "b", "n"))
    return life


def unnamed_ending() -> Life:
    return Life.after(*read([metadata("a"), epoch(1), target("a", 0), stands(1), owns("a", 1, 0)]), *_ends(20, "a"))


def streams() -> Life:
    at = [(offset, START + offset * SECOND, STREAMS, 7) for offset in range(10, 17)]
    parts = ("0", ("orders",), (), ()), ("1", ("bills",), ("b.*",), ("counted",))
    active, standby, warmup = (("0", (0, 2)), ("1", (1,))), (("0", (1,)),), (("1", (0,)),)
    return Life.after(
        ModernMember(
            *at[0],
            "a",
            None,
            "r1",
            "client",
            "/10.0.0.1",
            (),
            process_id="p1",
            topology_epoch=1,
            client_tags={"zone": "z"},
            endpoint=("host", 80),
        ),
        StreamsTopology(
            *at[1], 1, parts, (InternalTopics(), InternalTopics((("c", 2),), (3,), ("d",), (((0,), (0,)),)))
        ),
        KnownTopics(*at[2], ((TOPIC_ID, "orders", 3),)),
        GroupEpoch(*at[3], 1, 77, validated_topology=1, assignment_configs={"num.standby.replicas": "1"}),
        TargetAssignment(*at[4], "a", active, standby, warmup),
        TargetEpoch(*at[5], 1),
        CurrentAssignment(*at[6], "a", 1, 0, 0, active, (), standby, warmup, standby, warmup),
        TargetAssignment(17, START, STREAMS, 7, "a", active, warmup, standby),
    )


def initializing() -> Life:
    return Life.after(*read([*share_log.READY, share_log.member("b", "orders")]))


def behind() -> Life:
    return Life.after(make_observation(3, make_topic("x", 3)), make_record(5, even("x", 2, "a", "b"), leader_epoch=4))


def changing() -> Life:
    life = Life()
    counts = [KnownTopics(at, START, "consumer", 7, ((TOPIC_ID, "orders", count),)) for at, count in ((9, 3), (30, 4))]
    matched = [
        (other_key(16, GROUP, "ord.*"), regular_expression(topics, 7, START))
        for topics in (["orders"], ["orders", "ordeals"])
    ]
    life.take(*read([metadata("a", "i"), epoch(1), target("a", 0, 1, 2), stands(1)]), counts[0])
    *others, decided = read([_resolving("b"), matched[0], epoch(2), target("a", 0), target("b", 1, 2), stands(2)], 20)
    life.take(*others, msgspec.structs.replace(decided, leader_epoch=4))  # type: ignore[arg-type]
    away = other_key(8, GROUP, "a"), current_assignment(-2, {TOPIC: (0,)})
    other = other_key(5, GROUP, "b"), member_metadata([], regex="ord.*")
    life.take(counts[1], *read([away, other, matched[1]], 31))
    return life


def restless() -> Life:
    life = Life.after(*(make_record(at, even("x", 2, "a", "b"), generation=at) for at in (5, *range(4_000, 4_060, 10))))
    life.take(
        make_observation(4_100, make_topic("x", 2, end=100)), make_observation(4_200, make_topic("x", 2, end=150))
    )
    return life


def loaded() -> Life:
    """Ten minutes and one round of a group with a hot partition that is behind all the time."""
    life = Life.after(make_record(5, even("x", 2, "a", "b")))
    for second in range(10, 640, 60):
        commits = [make_commit(second + p, (10 + 20 * p) * second, topic="x", partition=p) for p in (0, 1)]
        life.take(*commits, make_observation(second + 5, make_topic("x", 2, end=[10**6 + 90 * second, 10**6 + second])))
    return life


def open_cost(row: ChurnRow) -> OpenCost:
    """The cost of a rebalance with this row, of which a member has committed and the next boundary has not come."""
    seen = RoundSpan(START, START + 1, 2)
    row = msgspec.structs.replace(
        row,
        replaced=(ReplacedMember("i", "before", "after"),),
        partitions_pending_handover=1,
        unassigned_partition_seconds_max=1.0,
    )
    return OpenCost(row, [NextOwner([(START, 1, True)], START + 5)], {"x": {0: 0}}, START, seen, 5)


def seen() -> Life:
    """A group whose log is not read, after two looks; the row of an open cost is edited to have an interval."""
    life = Life()
    topic = make_topic("x", 2)
    first = make_look(5, topic, classic=SeenClassic("consumer", "range", even("x", 2, "a")))
    second = make_look(7, topic, classic=SeenClassic("consumer", "range", even("x", 2, "a", "b")))
    rows = life.take(first, second)
    life.state.classic.cost = open_cost(rows.rebalance_churn[-1])
    seen = RoundSpan(START, START + 1, 2)
    life.state.classic.rounds = RebalanceRounds(seen, "Stable", seen.elapsed, seen)
    return life


def seen_by_broker() -> Life:
    """A KIP-848 group that is only seen, which has passed over epochs, has no members now, and had too many before."""
    life = Life()
    orders = _orders(100)
    consumer = {"group_type": "consumer"}
    one = SeenMember("a", 3, "client", "/10.0.0.1", None, None, ("orders",), None, ((TOPIC_ID, (0,)),), (), None)
    two = msgspec.structs.replace(one, epoch=6, target=((TOPIC_ID, (0, 1)),))
    life.take(make_look(5, orders, modern=SeenModern(3, 3, "uniform", (one,)), **consumer))
    life.take(make_look(7, orders, modern=SeenModern(6, 6, "uniform", (two,)), **consumer))
    life.state.seen = SeenState(life.state.seen.looked if life.state.seen else 0, empty=True, untold=2_000)
    return life


def rocketmq() -> Life:
    """A RocketMQ group that changes while one member does not answer; owners were wrong for a while."""
    life, world = Life(), three()
    world.routes["n2"] = {"orders": {"broker-a": 4}}
    client = world.clients[C]
    client.more = {"subscriptions": (SubscriptionSeen("orders", "TagA"),)}
    world.clients[A].held["orders"].clear()
    client.answer = TIMEOUT
    world.round(3)
    world.leave(B)
    world.rebalance(A)
    world.round(2)
    world.leave(A)
    world.round()
    life.take(*world.seen)
    # The cost of a decision that was only seen is never open; the columns have to be read all the same.
    life.state.classic.cost = open_cost(world.rows.rebalance_churn[-1])
    return life


def rocketmq_filtered() -> Life:
    """A RocketMQ group with filters, one of whose brokers no server names any more."""
    life, world = Life(), three(more={"subscriptions": (SubscriptionSeen("orders", "TagA"),)})
    world.consume("orders", "broker-b", 0, end=7, committed=5)
    world.round()
    world.routes = {"n1": {"orders": {"broker-a": 4}}}
    del world.lists["broker-b"]
    world.round()
    life.take(*world.seen)
    return life


def unreadable() -> Life:
    life = Life()
    damaged = msgspec.structs.replace(make_commit(25, None), tombstones=0, deleted=False, unreadable=True)
    life.take(
        make_record(5, even("orders", 4, "a", "b")), make_commit(6, 50), make_observation(10, make_topic("orders", 4))
    )
    life.take(UnreadableMembership(20), damaged, make_observation(30, make_topic("orders", 4)))
    life.take(msgspec.structs.replace(damaged, first_record=35, last_record=35))
    return life


def configured() -> Life:
    life = Life(configured=Configured("v1", "sticky", ("java",)))
    life.take(make_record(5, even("orders", 4, "a", "b")), make_observation(10, make_topic("orders", 4)))
    return life


def unreadable_targets() -> Life:
    life = consumer()
    life.take(UnreadableModern(1_000, 7, "a"))
    return life


def sharing() -> Life:
    """A share group whose records came back, were given up and rejected; a coordinator alone told of the last round."""
    topic = make_topic("x", 1, end=20)
    of_group: dict[str, Any] = {"group_type": "share", "protocol_type": "share"}
    given_up = SharePartition(0, 4, 3, -1, 5, 2, 1, 2, 3, ((1, 2), (5, 1)))
    life = Life.after(
        make_observation(10, topic, shares=SeenShares(STATE_LOG, 1, {"x": (given_up,)}, 30_000, 5), **of_group),
        make_observation(20, topic, shares=SeenShares(BROKERS, 1, {"x": (SharePartition(0, 4, lag=12),)}), **of_group),
    )
    assert life.state is not None
    share = life.state.partitions["x"][0].share
    assert share is not None
    # Between two rounds these are told already: as after a round whose rows are not written yet.
    share.given_up = share.rejected = share.given_up_in_round = 1
    share.done_told, share.first, share.archived, share.released, share.deliveries = 3, 5, 1, 2, 3
    return life


STATES: Final[dict[str, tuple[str, Callable[[], Life]]]] = {
    "behind": ("a leader that did not know the partition count that a round had shown", behind),
    "changing": (
        "a consumer group whose subscriptions and topics have changed since its decision, with one member away",
        changing,
    ),
    "classic": ("three generations not judged yet, members with racks, a tombstone in a compacted stretch", classic),
    "configured": ("a group that runs another strategy than the configured one", configured),
    "consumer": (
        "a consumer group while a pause is measured and the next target is written; racks, a topic, offsets changed",
        consumer,
    ),
    "cooperative": (
        "third generation not judged yet, the cost of its move open, commits of one partition not taken in yet",
        cooperative,
    ),
    "drifted": ("a drifted generation whose cost is known in part", drifted),
    "ending": ("a consumer group that has ended just now, before the classic record that follows", ending),
    "growing": ("a group that was set back, falls behind and is set back again; commits not told yet", growing),
    "partitions_pending_handover": (
        "one partition given up at 15 and not given on; a third partition first seen at 20",
        pending_handover,
    ),
    "initializing": ("a share group with a member that has joined just now", initializing),
    "joined": ("an upgraded group whose target is being carried out, that no round has shown yet", joined),
    "loaded": ("a group that was behind for a whole window, with a hot partition", loaded),
    "restless": ("a group that rebalances far more often than it did, and commits nothing", restless),
    "seen": ("a group whose log is not read: two looks", seen),
    "seen_by_broker": ("a KIP-848 group that is only seen, which has passed over epochs", seen_by_broker),
    "rocketmq": ("a RocketMQ group while a change settles, with a member that does not answer", rocketmq),
    "rocketmq_filtered": (
        "a RocketMQ group at rest, whose members filter a topic, with a broker that no server names any more",
        rocketmq_filtered,
    ),
    "sharing": ("a share group with records that came back, were given up and rejected", sharing),
    "stopping": (
        "a simple group that committed up to 200 and is behind since 211; the time of the newest round has jumped",
        stopping,
    ),
    "streams": ("a streams group that no round has shown yet", streams),
    "unnamed_ending": ("a consumer group that has ended, its topics never named", unnamed_ending),
    "unreadable": ("a group whose newest membership and commits a later Kafka has written", unreadable),
    "unreadable_targets": ("a consumer group with a target that a later Kafka has written", unreadable_targets),
    "upgrading": ("a classic group whose upgrade has begun", upgrading),
}
"""The subject of each state, and the life that leads to it."""


def _commits(partition: int, *commits: tuple[int, int]) -> list[GroupInput]:
    topic = "orders" if len(commits) == 1 else "x"
    return [make_commit(record, offset, topic=topic, partition=partition) for record, offset in commits]


def _commits_of_all(record: int, offset: int) -> list[GroupInput]:
    return [make_commit(record + partition, offset, partition=partition) for partition in range(4)]


def _racked(
    name: str, assigned: tuple[int, ...], owned: tuple[int, ...], generation: int | None, **changes: Any
) -> Any:
    fields: dict[str, Any] = {"rack": {"a": "r1", "b": "r2"}[name], "user_data": b"\0\0\0\2"}
    fields |= {"owned": (("orders", owned),) if owned else (), "generation": generation}
    fields |= {"group_instance_id": "i1"} if name == "a" else {}
    return make_member(name, assigned={"orders": assigned} if assigned else {}, **(fields | changes))


def _orders(end: int, racks: Any = None) -> TopicObservation:
    return make_topic("orders", 4, end=end, topic_id=TOPIC_ID, racks=racks)


def _packed(*starts: int) -> bytes:
    return b"".join(start.to_bytes(8, "little") for start in starts)


def _carried(name: str) -> Written:
    return other_key(5, GROUP, name), member_metadata(("orders",), protocols=["range"])


def _resolving(name: str) -> Written:
    return other_key(5, GROUP, name), member_metadata(["orders"], assignor="uniform", rack="r1")


def _ends(first: int, *names: str) -> list[GroupInput]:
    tombstones = [*gone(*names), (other_key(6, GROUP), None), (other_key(4, GROUP), None), (other_key(3, GROUP), None)]
    return read(tombstones, first)
