"""Share and streams groups whose log is not read: what coordinators tell of their members, and what is judged by it.

The targets are those that a 4.3.1 broker gives, as in the tests of the log (`share/share_log.py`,
`modern/streams_log.py`).
"""

from __future__ import annotations

from typing import Any

from streaming.groups.rows import DriftRow
from streaming.records import (
    BROKERS,
    GroupObservation,
    IdPartitions,
    InternalTopics,
    SeenMember,
    SeenModern,
    SeenShares,
    SeenTasks,
    SeenTopology,
    SharePartition,
)
from tests.groups.build import Life, make_look, make_topic
from tests.groups.modern.streams_log import (
    EVERYTHING,
    FIRST_HALF,
    SECOND_HALF,
    SPARE_OF_FIRST,
    SPARE_OF_SECOND,
)
from tests.groups.modern_log import TOPIC_ID
from tests.groups.share.share_log import BILLS_ID

ORDERS = make_topic("orders", 4, topic_id=TOPIC_ID)
BILLS = make_topic("bills", 2, topic_id=BILLS_ID)


def shares(**counts: int) -> SeenShares:
    """What a coordinator tells of initialized partitions: so many of each topic."""
    return SeenShares(BROKERS, 0, {t: tuple(SharePartition(n, 0, lag=9) for n in range(c)) for t, c in counts.items()})


def has(
    name: str, epoch: int, *partitions: int, topics: tuple[str, ...] = ("orders",), of: str = "orders"
) -> SeenMember:
    owned = ((TOPIC_ID, partitions),) if partitions else ()
    return SeenMember(name, epoch, name, "/10.0.0.1", None, "r1", topics, None, owned, (), None)


def share(number: int, epoch: int, *members: SeenMember, **changes: Any) -> GroupObservation:
    told = SeenModern(epoch, changes.pop("assigned", epoch), "simple", members)
    given: dict[str, Any] = {"group_type": "share", "protocol_type": "share", "shares": shares(orders=4)} | changes
    return make_look(number, ORDERS, BILLS, modern=told, state="Stable" if members else "Empty", **given)


def verdicts(life: Life) -> list[tuple[str, str | None]]:
    return [(row.verdict, row.reason) for row in life.rows.drift]


def test_members_of_a_share_group_and_what_they_have_are_told_and_the_target_is_recomputed() -> None:
    life = Life.after(share(1, 2, has("a", 2, 0, 1, 2, 3)), share(3, 3, has("a", 3, 2, 3), has("b", 3, 0, 1)))
    assert verdicts(life)[1] == ("identical", None)
    row = life.rows.rebalance_churn[-1]
    assert (row.generation, row.joined, row.members, row.partitions, row.strategy) == (3, ("b",), 2, 4, "simple")
    newest = {row.member_id: row for row in life.rows.members if row.decision == 3 and not row.ended}
    assert {name: [tuple(of.partitions) for of in row.partitions or ()] for name, row in newest.items()} == {
        "a": [(2, 3)],
        "b": [(0, 1)],
    }
    assert (newest["a"].client_host, newest["a"].rack, newest["a"].subscription) == ("/10.0.0.1", "r1", ("orders",))
    health = life.rows.group_health[-1]
    assert (health.source, health.members, health.assigned_partitions, health.imbalance) == ("admin", 2, 4, 0)
    assert not health.findings


def test_a_share_group_is_not_judged_before_all_members_have_their_new_target() -> None:
    life = Life.after(share(1, 2, has("a", 2, 0, 1, 2, 3)), share(3, 3, has("a", 2, 0, 1, 2, 3), has("b", 3, 0, 1)))
    assert len(life.rows.rebalance_churn) == 1
    life.take(share(5, 3, has("a", 3, 2, 3), has("b", 3, 0, 1)))
    assert verdicts(life)[1] == ("identical", None)


def test_partitions_that_are_initialized_after_the_target_do_not_spoil_its_verdict() -> None:
    life = Life.after(share(1, 2, has("a", 2, 0, 1, 2, 3)))
    both = {"shares": shares(orders=4, bills=2)}
    life.take(share(3, 3, has("a", 3, 2, 3), has("b", 3, 0, 1), **both))
    assert verdicts(life)[1] == ("identical", None)


def test_without_what_is_initialized_a_share_group_is_unverified() -> None:
    life = Life.after(
        share(1, 2, has("a", 2, 0, 1, 2, 3), shares=None),
        share(3, 3, has("a", 3, 2, 3), has("b", 3, 0, 1), shares=None),
    )
    assert verdicts(life)[1] == ("unverified", "which partitions the group had initialized is not known")
    life.take(share(5, 4, has("b", 4, 0, 1, 2), shares=shares(orders=2)))
    reason = f"no round has shown all partitions of its target as initialized: topic {TOPIC_ID} has others"
    assert verdicts(life)[2] == ("unverified", reason)


def test_a_member_with_a_topic_that_only_another_one_wants_is_drift() -> None:
    both = {"shares": shares(orders=4, bills=2)}
    life = Life.after(
        share(1, 2, has("a", 2, 0, 1, 2, 3), has("b", 2, topics=("bills",)), **both),
        share(3, 3, has("a", 3, 0, 1, 2), has("b", 3, 3, topics=("bills",)), **both),
    )
    row = life.rows.drift[-1]
    assert (row.verdict, row.basis) == ("drifted", "invariant")
    [one] = row.drifted_partitions
    assert (one.topic, one.partition, one.kind, one.actual) == ("orders", 3, "not_subscribed", ("b",))


def test_a_share_group_that_follows_a_classic_one_of_its_name_is_another_group() -> None:
    life = Life.after(share(1, 2, has("a", 2, 0, 1, 2, 3)))
    told = SeenModern(1, 1, "uniform", (SeenMember("c", 1, "c", "/h", None, None, ("orders",), None, (), (), False),))
    life.take(make_look(3, ORDERS, modern=told, group_type="consumer"))
    health = life.rows.group_health[-1]
    assert (health.group_type, health.members) == ("consumer", 1)
    assert {row.member_id for row in life.rows.members if row.ended} == {"a"}


def test_a_group_whose_members_no_round_could_see_is_not_judged_and_says_what_it_takes() -> None:
    life = Life.after(make_look(1, ORDERS, looked=False, group_type="share", protocol_type="share"))
    health = life.rows.group_health[-1]
    assert health.verdict == "not_applicable"
    assert health.verdict_reason == (
        "no round could see who has what: for share groups that takes brokers since 4.1 that do not fail at it, "
        "and the right Describe on the group and on its topics"
    )


TOPICS = [make_topic(name, 4) for name in ("counted", "orders", "store")]
PARTS = (("0", ("orders",), (), ()), ("1", (), (), ("counted",)))
INTERNAL = (InternalTopics(sinks=("counted",)), InternalTopics((("store", 4),), (4,)))
STANDBY = {"num.standby.replicas": "1"}


def runs(
    name: str,
    epoch: int,
    target: IdPartitions = (),
    spare: IdPartitions = (),
    *,
    owned: IdPartitions | None = None,
    process: str | None = None,
) -> SeenMember:
    tasks = SeenTasks(process or f"process-{name}", 0, spare, (), spare)
    has_now = target if owned is None else owned
    return SeenMember(name, epoch, "client", "/10.0.0.1", None, None, (), None, has_now, target, False, tasks)


def streams(number: int, epoch: int, *members: SeenMember, **changes: Any) -> GroupObservation:
    settings, state = changes.pop("settings", STANDBY), changes.pop("state", "Stable")
    topology = SeenTopology(0, state != "NotReady", PARTS, INTERNAL, settings)
    told = SeenModern(epoch, epoch, "", members, topology=topology)
    given = {"group_type": "streams", "protocol_type": "streams"} | changes
    return make_look(number, *TOPICS, modern=told, state=state if members else "Empty", **given)


def joined(**changes: Any) -> Life:
    """A second member has joined; both targets are those that a real broker gave."""
    life = Life.after(streams(1, 3, runs("a", 3, EVERYTHING), **changes))
    two = runs("a", 4, FIRST_HALF, SPARE_OF_FIRST), runs("b", 4, SECOND_HALF, SPARE_OF_SECOND)
    life.take(streams(3, 4, *two, **changes))
    return life


def newest(life: Life) -> DriftRow:
    return life.rows.drift[-1]


def test_tasks_of_a_streams_group_are_told_and_recomputed() -> None:
    life = joined()
    assert (newest(life).verdict, newest(life).reason) == ("identical", None)
    row = life.rows.rebalance_churn[-1]
    assert (row.generation, row.joined, row.partitions, row.partitions_moved, row.strategy) == (4, ("b",), 8, 4, None)
    [one] = [row for row in life.rows.members if row.member_id == "b"]
    assert [(of.kind, of.subtopology, of.tasks) for of in one.tasks or ()] == [
        ("active", "0", (2, 3)),
        ("active", "1", (2, 3)),
        ("standby", "1", (0, 1)),
    ]
    owners = {(row.topic, row.partition): row.member_id for row in life.rows.lag if row.round == 3}
    assert owners["counted", 3] == "b"
    health = life.rows.group_health[-1]
    assert (health.members, health.assigned_partitions, health.imbalance, health.findings) == (2, 8, 0, ())


def test_without_the_right_to_read_its_settings_a_group_with_state_is_unverified() -> None:
    reason = "the right DescribeConfigs on the group is missing, so how many standby replicas it has is not known"
    assert (newest(joined(settings=None)).verdict, newest(joined(settings=None)).reason) == ("unverified", reason)


def test_a_target_that_nothing_fits_may_be_of_a_broker_with_the_early_access() -> None:
    swapped = runs("a", 4, SECOND_HALF, SPARE_OF_SECOND), runs("b", 4, FIRST_HALF, SPARE_OF_FIRST)
    row = newest(Life.after(streams(1, 3, runs("a", 3, EVERYTHING)), streams(3, 4, *swapped)))
    early = "no candidate gives it; streams groups of Kafka 4.1 are early access, and not recomputed"
    assert (row.verdict, (row.reason or "").startswith(early)) == ("unverified", True)


def test_epochs_that_no_look_has_shown_leave_a_streams_target_unverified() -> None:
    life = Life.after(
        streams(1, 3, runs("a", 3, EVERYTHING)),
        streams(3, 6, runs("a", 6, FIRST_HALF, SPARE_OF_FIRST), runs("b", 6, SECOND_HALF, SPARE_OF_SECOND)),
    )
    assert newest(life).reason == "2 epochs passed between two looks: the previous target is not known"


def test_a_task_that_is_active_at_two_members_by_their_targets_is_drift() -> None:
    life = Life.after(
        streams(1, 3, runs("a", 3, EVERYTHING)),
        streams(3, 4, runs("a", 4, (("0", (0, 1, 2)), ("1", (0, 1)))), runs("b", 4, SECOND_HALF)),
    )
    assert (newest(life).verdict, newest(life).basis) == ("drifted", "invariant")
    assert [(one.topic, one.partition, one.kind) for one in newest(life).drifted_partitions] == [
        ("0", 2, "doubly_assigned")
    ]


def test_a_topology_that_is_not_ready_gives_nobody_tasks_and_is_no_drift() -> None:
    life = Life.after(
        streams(1, 3, runs("a", 3, EVERYTHING)),
        streams(3, 4, runs("a", 4), state="NotReady"),
        streams(5, 4, runs("a", 4), state="NotReady"),
    )
    reason = "topics of the topology were missing or wrong, so no assignor gave tasks"
    assert (newest(life).verdict, newest(life).reason) == ("not_applicable", reason)
    assert {finding.finding for finding in life.rows.group_health[-1].findings} == {"topology_not_ready"}
