"""Causes of a modern group's new targets: what its records prove, and nothing else."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from streaming.groups.rows import Cause, ChurnRow
from streaming.records import GroupEpoch, GroupInput, KnownTopics, TargetEpoch
from tests.examples import examples
from tests.groups.build import START, Life, even, make_record, make_tombstone
from tests.groups.coordinator import TOPIC, Coordinator, Written, lives
from tests.groups.modern_log import (
    FIRST,
    SECOND_MEMBER,
    TOPIC_ID,
    asking,
    epoch,
    gone,
    metadata,
    observation,
    owns,
    read,
    stands,
    target,
)
from tests.offsets_log.written import (
    current_assignment,
    member_metadata,
    other_key,
    regular_expression,
    target_assignment,
)

GROUP = "orders-app"


def rows_of(*inputs: GroupInput) -> list[ChurnRow]:
    life = Life.after(*inputs)
    return [row for row in life.rows.rebalance_churn if row.revision == 1]


def causes_of(*log: Written) -> list[Cause]:
    """Causes of the newest decision."""
    return list(rows_of(*read([*FIRST, *log]))[-1].causes or ())


def subscribes(name: str, *topics: str, regex: str | None = None) -> Written:
    return other_key(5, GROUP, name), member_metadata(topics, regex=regex, assignor="uniform")


def matches(regex: str, *topics: str, version: int = 7) -> Written:
    return other_key(16, GROUP, regex), regular_expression(topics, version, START)


def away(name: str) -> Written:
    return other_key(8, GROUP, name), current_assignment(-2, {TOPIC: (0, 1, 2, 3)})


def test_the_first_member_of_a_group_joined() -> None:
    (found,) = causes_of()
    assert (found.cause, found.count, found.members) == ("member_joined", 1, ("a",))


def test_a_member_that_joined_is_named() -> None:
    (found,) = causes_of(*SECOND_MEMBER)
    assert (found.cause, found.members) == ("member_joined", ("b",))


def test_a_member_that_is_gone_may_have_left_or_expired() -> None:
    (found,) = causes_of(*SECOND_MEMBER, *gone("b"), epoch(3), target("a", 0, 1, 2, 3), stands(3))
    assert (found.cause, found.members) == ("member_gone", ("b",))
    assert found.evidence == (
        "gone; a leave and a timeout look the same in the log, and the coordinator's own log tells them apart"
    )


def test_the_last_member_that_is_gone_leaves_an_empty_group() -> None:
    (found,) = causes_of(*gone("a"), epoch(2))
    assert (found.cause, found.members) == ("member_gone", ("a",))


def test_a_static_member_that_went_away_and_did_not_come_back_is_gone_with_that_evidence() -> None:
    (found,) = causes_of(*SECOND_MEMBER, away("a"), *gone("a"), epoch(3), target("b", 0, 1, 2, 3), stands(3))
    assert (found.cause, found.members) == ("member_gone", ("a",))
    assert "epoch -2" in found.evidence


def test_a_static_member_s_return_under_another_id_is_no_cause() -> None:
    back = metadata("a2", "i"), target("a2", 0, 1, 2, 3), owns("a2", 1, 0, 1, 2, 3)
    found = causes_of(
        away("a"), *gone("a"), *back, *SECOND_MEMBER[:2], target("a2", 0, 1), target("b", 2, 3), stands(2)
    )
    assert [(c.cause, c.members) for c in found] == [("member_joined", ("b",))]


def test_a_returning_member_s_new_subscription_is_a_cause() -> None:
    both = other_key(5, GROUP, "a2"), member_metadata(["bills", "orders"], instance_id="i", assignor="uniform")
    back = both, target("a2", 0, 1, 2, 3), owns("a2", 1, 0, 1, 2, 3)
    found = causes_of(*gone("a"), *back, epoch(2), stands(2))
    assert [(c.cause, c.topic, c.before, c.after, c.members) for c in found] == [
        ("subscription_changed", "bills", "0", "1", ("a2",))
    ]


def test_topics_that_members_add_or_remove_are_told() -> None:
    found = causes_of(subscribes("a", "bills"), epoch(2), target("a"), stands(2))
    assert [(c.cause, c.topic, c.before, c.after) for c in found] == [
        ("subscription_changed", "bills", "0", "1"),
        ("subscription_changed", "orders", "1", "0"),
    ]


def test_a_subscription_that_is_as_before_again_has_not_changed() -> None:
    found = causes_of(subscribes("a", "bills"), subscribes("a", "orders"), epoch(2), stands(2))
    assert [c.cause for c in found] == ["unknown"]


def test_what_a_regular_expression_newly_matches_is_a_change_of_the_subscription() -> None:
    log = subscribes("a", regex="or.*"), matches("or.*", "orders"), epoch(2), stands(2)
    more = matches("or.*", "orders", "orphans", version=9), epoch(3), stands(3)
    # By name or by expression: it is subscribed to the same topic.
    assert [c.cause for c in causes_of(*log)] == ["unknown"]
    assert [(c.cause, c.topic) for c in causes_of(*log, *more)] == [("subscription_changed", "orphans")]


def test_a_regular_expression_resolved_again_to_the_same_topics_is_no_change() -> None:
    log = subscribes("a", regex="or.*"), matches("or.*", "orders"), epoch(2), stands(2)
    assert [c.cause for c in causes_of(*log, matches("or.*", "orders", version=9), epoch(3), stands(3))] == ["unknown"]


def test_a_regular_expression_that_is_not_resolved_claims_nothing() -> None:
    assert [c.cause for c in causes_of(subscribes("a", regex="or.*"), epoch(2), stands(2))] == ["unknown"]


def test_another_assignor_is_told_where_both_were_asked_for() -> None:
    (found,) = causes_of(asking("a", "range"), epoch(2), stands(2))
    assert (found.cause, found.before, found.after) == ("strategy_changed", "uniform", "range")


def test_a_change_to_the_broker_s_default_may_be_none() -> None:
    assert [c.cause for c in causes_of(asking("a", None), epoch(2), stands(2))] == ["unknown"]


def test_epochs_without_a_target_are_told_beside_the_cause() -> None:
    found = causes_of(metadata("b"), epoch(2), metadata("c"), epoch(3), target("b"), target("c"), stands(3))
    assert [c.cause for c in found] == ["member_joined", "unfinished_generations"]


def hashed(first: int, second: int, *targets: Written, log: tuple[Written, ...] = ()) -> list[Cause]:
    """Causes of the second decision, with these hashes of the topics' metadata (Kafka 4.1)."""
    inputs = []
    for item in read([*FIRST, *log, epoch(2), *targets, stands(2)]):
        if isinstance(item, GroupEpoch):
            item = msgspec.structs.replace(item, metadata_hash=first if item.epoch == 1 else second)  # noqa: PLW2901
        inputs.append(item)
    return list(rows_of(observation(1), *inputs)[-1].causes or ())


def test_partitions_that_a_topic_gained_are_told_by_the_hash_and_the_target() -> None:
    (found,) = hashed(7, 8, target("a", 0, 1, 2, 3, 4, 5))
    assert (found.cause, found.topic, found.before, found.after) == ("partitions_changed", "orders", "4", "6")


def test_a_larger_target_with_the_same_hash_is_the_assignor_s() -> None:
    assert [c.cause for c in hashed(7, 7, target("a", 0, 1, 2, 3, 4, 5))] == ["unknown"]


@pytest.mark.parametrize(("first", "second"), [(0, 8), (7, 0)])
def test_a_broker_that_does_not_record_the_hash_claims_nothing(first: int, second: int) -> None:
    (found,) = hashed(first, second, target("a", 0, 1, 2, 3, 4, 5))
    assert (found.cause, found.evidence) == ("unknown", "the log shows no change of members, subscriptions or topics")


def test_metadata_that_changed_otherwise_is_unknown_with_that_evidence() -> None:
    (found,) = hashed(7, 8)
    assert (found.cause, found.evidence) == (
        "unknown",
        "the brokers' hash of the topics' metadata changed, and the targets do not show how",
    )


def test_a_deleted_topic_that_is_still_subscribed_lost_its_partitions() -> None:
    (found,) = hashed(7, 8, target("a"))
    assert (found.cause, found.topic, found.before, found.after) == ("partitions_changed", "orders", "4", "0")


def test_a_topic_that_nobody_subscribes_to_any_more_did_not_lose_its_partitions() -> None:
    found = hashed(7, 8, target("a"), log=(subscribes("a", "bills"),))
    assert [(c.cause, c.topic) for c in found] == [
        ("subscription_changed", "bills"),
        ("subscription_changed", "orders"),
    ]


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("first", [0, 7])
def test_a_topic_that_the_coordinator_saw_after_its_first_member_gained_partitions(first: int, *, seen: bool) -> None:
    log = [metadata("a"), epoch(1), target("a"), stands(1), epoch(2), target("a", 0, 1, 2, 3), stands(2)]
    inputs: list[GroupInput] = [observation(1)] if seen else []
    for item in read(log):
        of = item.epoch if isinstance(item, GroupEpoch) else None
        inputs.append(item if of is None else msgspec.structs.replace(item, metadata_hash={1: first, 2: 8}[of]))
    (found,) = rows_of(*inputs)[-1].causes or ()
    assert (found.cause, found.before, found.after) == ("partitions_changed", "0", "4")
    assert found.topic == ("orders" if seen else TOPIC_ID)


def test_up_to_kafka_4_0_the_log_has_the_partition_counts_themselves() -> None:
    def counted(at: int, count: int) -> KnownTopics:
        return KnownTopics(at, START, "consumer", 7, ((TOPIC_ID, "orders", count),))

    first, second = read(FIRST), read([epoch(2), stands(2)], 20)
    (found,) = rows_of(*first[:1], counted(10, 4), *first[1:], counted(19, 6), *second)[-1].causes or ()
    assert (found.cause, found.topic, found.before, found.after) == ("partitions_changed", "orders", "4", "6")


def test_a_newer_leader_epoch_of_the_log_partition_stands_beside_the_cause() -> None:
    inputs = [
        msgspec.structs.replace(item, leader_epoch=item.epoch + 6) if isinstance(item, TargetEpoch) else item
        for item in read([*FIRST, *SECOND_MEMBER])
    ]
    rows = rows_of(*inputs)
    assert [[(c.cause, c.before, c.after) for c in row.causes or ()] for row in rows] == [
        [("member_joined", None, None)],
        [("member_joined", None, None), ("coordinator_moved", "7", "8")],
    ]


def test_an_upgrade_is_a_migration_with_who_joined() -> None:
    carried = [(other_key(5, GROUP, name), member_metadata(("orders",), protocols=["range"])) for name in ("a", "b")]
    log = [*carried, metadata("n"), epoch(4), target("a", 0), target("b", 1), target("n", 2, 3), stands(4)]
    rows = rows_of(make_record(5, even("orders", 4, "a", "b"), generation=3), make_tombstone(9), *read(log, 10))
    assert [(c.cause, c.members) for c in rows[-1].causes or ()] == [("migration", ()), ("member_joined", ("n",))]


def test_a_downgrade_is_a_migration_with_who_is_gone() -> None:
    ended = [*gone("a", "b"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)]
    log = [*FIRST, *SECOND_MEMBER, *ended]
    record = make_record(10 + len(log), even("orders", 4, "a"), generation=3)
    found = rows_of(*read(log), record)[-1].causes or ()
    assert [(c.cause, c.members) for c in found] == [("migration", ()), ("member_gone", ("b",))]


def test_what_came_before_a_group_that_is_met_in_the_middle_of_its_life_is_unknown() -> None:
    rows = rows_of(*read([metadata("a"), metadata("b"), epoch(9), target("a", 0), target("b", 1), stands(9)]))
    assert [[c.cause for c in row.causes or ()] for row in rows] == [["unknown"]]


def test_members_of_the_new_protocol_stop_nothing_that_does_not_move() -> None:
    row = rows_of(*read([*FIRST, *SECOND_MEMBER]))[-1]
    assert (row.rebalance_protocol, row.partitions_stopped_unmoved) == ("consumer", 0)


def test_a_member_of_the_classic_protocol_among_them_may_stop_everything() -> None:
    classic = other_key(5, GROUP, "c"), member_metadata(("orders",), protocols=["range"])
    row = rows_of(*read([*FIRST, classic, epoch(2), target("a", 0, 1), target("c", 2, 3), stands(2)]))[-1]
    assert (row.rebalance_protocol, row.partitions_stopped_unmoved) == (None, None)


@settings(deadline=None, max_examples=examples(200))
@given(lives())
def test_no_cause_is_claimed_that_did_not_happen(group: Coordinator) -> None:
    rows = {row.decision: row for row in rows_of(*read(group.log, 0))}
    # A group whose beginning looks like its middle has no row for having become empty.
    for told in [told for told in group.decisions if told.record in rows]:
        causes = {found.cause: found for found in rows[told.record].causes or ()}
        named = {kind: found.members for kind, found in causes.items()}
        if "unknown" in causes and causes["unknown"].evidence.startswith("the decision before"):
            assert len(causes) == 1
            continue
        assert set(named.get("member_joined", ())) == set(told.joined)
        assert set(named.get("member_gone", ())) == set(told.left)
        assert causes.keys() <= {
            "member_joined",
            "member_gone",
            "subscription_changed",
            "unknown",
            "unfinished_generations",
        }
        if "unknown" in causes:
            assert not told.joined
            assert not told.left


def test_partitions_of_an_unknown_topic_that_come_with_a_member_are_no_change_of_the_topic() -> None:
    bills = other_key(7, GROUP, "b"), target_assignment({bytes(15) + b"b": (0, 1)})
    found = hashed(7, 8, bills, log=(subscribes("b", "bills"),))
    assert [(c.cause, c.topic) for c in found] == [("member_joined", None)]
