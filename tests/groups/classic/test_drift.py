"""Verdicts with hand-written expected assignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streaming.groups.rows import DriftedPartition
from streaming.records import Configured, Member
from tests.groups.build import (
    GROUP,
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    declared,
    even,
    make_member,
    make_observation,
    make_record,
    make_topic,
)
from tests.groups.verdicts import JAVA, KAFKA_PYTHON, LIBRDKAFKA, judged, verdict_of


@pytest.mark.parametrize("client", [JAVA, LIBRDKAFKA, KAFKA_PYTHON], ids=["java", "librdkafka", "kafka-python"])
def test_range_over_two_topics_is_identical(client: dict[str, Any]) -> None:
    row = judged(
        make_member("a", ("x", "y"), {"x": (0, 1), "y": (0,)}, **client),
        make_member("b", ("x", "y"), {"x": (2,), "y": (1,)}, **client),
        make_member("c", ("x", "y"), {"x": (3,)}, **client),
        counts={"x": 4, "y": 2},
    )
    assert (row.verdict, row.reason, row.drifted_count, row.drifted_partitions) == ("identical", None, 0, ())


@pytest.mark.parametrize("client", [JAVA, LIBRDKAFKA, KAFKA_PYTHON], ids=["java", "librdkafka", "kafka-python"])
def test_roundrobin_over_two_topics_is_identical(client: dict[str, Any]) -> None:
    row = judged(
        make_member("a", ("x", "y"), {"x": (0, 2), "y": (1,)}, **client),
        make_member("b", ("x", "y"), {"x": (1,), "y": (0,)}, **client),
        counts={"x": 3, "y": 2},
        protocol="roundrobin",
    )
    assert (row.verdict, row.reason) == ("identical", None)


def test_the_library_that_fits_is_named() -> None:
    row = judged(
        *(make_member(m, ("x",), {"x": p}, **LIBRDKAFKA) for m, p in (("a", (0,)), ("b", (1,)))), counts={"x": 2}
    )
    assert row.matching_library is not None
    assert row.matching_library.startswith("librdkafka")


def test_a_leader_of_kafka_python_that_loses_a_member_is_identical() -> None:
    # a (dynamic), b (static), c (dynamic): itertools.groupby over unsorted members drops a.
    row = judged(
        make_member("a", ("x",), {}, **KAFKA_PYTHON),
        make_member("b", ("x",), {"x": (0, 1)}, group_instance_id="i", **KAFKA_PYTHON),
        make_member("c", ("x",), {"x": (2,)}, **KAFKA_PYTHON),
        counts={"x": 3},
    )
    assert row.verdict == "identical"
    assert str(row.matching_library).startswith("kafka-python")


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        (declared("java:3.7.1"), ("drifted", "declared", None, "java:3.7.1")),
        (None, ("identical", None, "kafka-python:2.3", None)),
        (declared("java", "kafka-python"), ("identical", None, "kafka-python:2.3", None)),
    ],
    ids=["java declared", "nothing declared", "both declared"],
)
def test_the_same_loss_is_drift_only_where_java_alone_is_declared(
    configured: Configured | None, expected: tuple[str | None, ...]
) -> None:
    life = Life(configured=configured)
    life.take(make_record(1, generation=0, protocol_type=""), make_observation(2))
    life.rows.drift.clear()
    life.take(
        make_record(
            5,
            (
                make_member("a", ("x",), {}),
                make_member("b", ("x",), {"x": (0, 1)}, group_instance_id="i"),
                make_member("c", ("x",), {"x": (2,)}),
            ),
        ),
        make_observation(10, make_topic("x", 3)),
    )
    row = verdict_of(life)
    assert (row.verdict, row.basis, row.matching_library, row.nearest_library) == expected
    if row.verdict == "drifted":
        # Java: static b first, then a and c: one each.
        assert row.drifted_partitions == (DriftedPartition("x", 1, "misplaced", "a", ("b",)),)
        assert (row.reason, row.nearest_differing) == ("none of the declared clients gives this assignment", 1)


def test_everything_on_one_member_is_drifted_though_the_topic_was_first_seen_seconds_ago() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0, 1, 2, 3)}),
        make_member("b", ("x",), {}),
        counts={"x": 4},
    )
    assert (row.verdict, row.basis, row.candidates > 0, row.drifted_count) == ("drifted", "promise", True, 2)
    assert row.reason == (
        "range gives members with equal subscriptions as many partitions of topic 'x' as it can: member 'a' has 4, "
        "and 'b' has 0"
    )
    assert row.drifted_partitions == (
        DriftedPartition("x", 2, "misplaced", "b", ("a",)),
        DriftedPartition("x", 3, "misplaced", "b", ("a",)),
    )


def test_the_row_tells_decision_and_round() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2})
    assert (row.cluster, row.group_id, row.log_partition, row.decision) == ("test", GROUP, LOG_PARTITION, 5)
    assert (row.record_time, row.round, row.round_time) == (START + 5 * SECOND, 10, START + 10 * SECOND)
    assert (row.incarnation, row.generation, row.strategy) == (5, 1, "range")


def test_an_unknown_strategy_is_not_verified() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2}, protocol="house-blend")
    assert (row.verdict, row.reason) == ("unverified", "strategy 'house-blend' is not known")


def test_a_partition_with_two_owners_is_drifted_beside_a_subscription_that_cannot_be_read() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0, 1)}),
        make_member("b", None, {"x": (1,)}, undecodable="subscription: 3 bytes are missing"),
        counts={"x": 2},
    )
    assert (row.verdict, row.basis) == ("drifted", "invariant")
    assert row.drifted_partitions == (DriftedPartition("x", 1, "doubly_assigned", None, ("a", "b")),)


def test_an_undecodable_member_is_named_with_its_reason() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0,)}),
        make_member("b", None, undecodable="subscription: 3 bytes are missing"),
        counts={"x": 2},
    )
    assert (row.verdict, row.reason) == ("unverified", "member 'b': subscription: 3 bytes are missing")


def test_every_library_is_tried_where_the_leader_is_no_member() -> None:
    row = judged(*even("x", 2, "a", "b")[::-1], counts={"x": 2}, leader="gone")
    assert row.verdict == "identical"


def test_an_empty_group_is_not_applicable() -> None:
    row = judged(counts={})
    assert (row.verdict, row.reason) == ("not_applicable", "the group is empty")


def test_a_connect_group_is_not_applicable() -> None:
    row = judged(
        make_member("w1", None, assigned=None, user_data=None), counts={}, protocol_type="connect", protocol="sessioned"
    )
    assert (row.verdict, row.reason) == ("not_applicable", "protocol type 'connect' assigns no topic partitions")


def test_a_partition_assigned_twice_is_drifted_for_any_strategy() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0, 1)}),
        make_member("b", ("x",), {"x": (1,)}),
        counts={"x": 2},
        protocol="house-blend",
    )
    assert (row.verdict, row.basis, row.reason) == ("drifted", "invariant", "partitions have two owners")
    assert row.drifted_partitions == (DriftedPartition("x", 1, "doubly_assigned", None, ("a", "b")),)


def test_a_topic_that_the_member_did_not_ask_for_is_a_finding_because_some_clients_deal_so() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0,), "y": (0,)}), make_member("b", ("y",), {"y": (1,)}))
    life.take(make_record(5, members), make_observation(10, make_topic("x", 1), make_topic("y", 2)))
    assert verdict_of(life).verdict == "unverified"
    assert [f.finding for f in life.rows.group_health[-1].findings] == ["not_subscribed", "unexplained_assignment"]


def test_a_foreign_assignor_may_give_a_topic_that_nobody_asked_for_and_a_finding_says_so() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0,), "y": (0,)}),)
    life.take(make_record(5, members, protocol="stream"), make_observation(10, make_topic("x", 1), make_topic("y", 1)))
    assert verdict_of(life).verdict == "unverified"
    (finding,) = life.rows.group_health[-1].findings
    assert (finding.finding, finding.detail) == (
        "not_subscribed",
        "assigned to members that do not subscribe to the topic: y (1 partition)",
    )


def test_a_foreign_assignor_may_give_what_only_the_leader_knows_of_yet() -> None:
    # Kafka Streams with a pattern: the leader has seen topic y, but the other member has not.
    row = judged(
        make_member("a", ("x", "y"), {"x": (0,)}),
        make_member("b", ("x",), {"y": (0,)}),
        counts={"x": 1, "y": 1},
        protocol="stream",
    )
    assert row.verdict == "unverified"


def test_the_first_record_of_static_members_may_be_a_member_s_return() -> None:
    # Read after compaction: b returned with only topic y, and still has its old partition of x.
    members = (
        make_member("a", ("x",), {"x": (0,)}, group_instance_id="i1"),
        make_member("b", ("y",), {"x": (1,)}, group_instance_id="i2"),
    )
    row = judged(*members, counts={"x": 2, "y": 1}, generation=4, configured=declared("java:3.7.1"))
    assert row.verdict == "unverified"
    assert "static member's return" in str(row.reason)


def test_static_members_that_fit_are_identical_at_first_sight() -> None:
    members = (
        make_member("a", ("x",), {"x": (0,)}, group_instance_id="i1"),
        make_member("b", ("x",), {"x": (1,)}, group_instance_id="i2"),
    )
    assert judged(*members, counts={"x": 2}, generation=4).verdict == "identical"


def test_a_static_member_s_return_is_not_judged() -> None:
    life = Life()
    a, b = (
        make_member("a", ("x",), {"x": (0,)}, group_instance_id="i1"),
        make_member("b", ("x",), {"x": (1,)}, group_instance_id="i2"),
    )
    back = make_member("b2", ("y",), {"x": (1,)}, group_instance_id="i2")
    life.take(make_record(5, (a, b)), make_observation(6, make_topic("x", 2)), make_record(7, (a, back)))
    life.take(make_observation(10, make_topic("x", 2), make_topic("y", 1)))
    assert [row.decision for row in life.rows.drift] == [5]
    assert life.rows.group_health[-1].verdict == "identical"


def test_a_record_that_no_leader_could_have_seen_is_not_verified() -> None:
    row = judged(make_member("a", ("x",), {"x": (0,)}), make_member("a", ("x",), {"x": (1,)}), counts={"x": 2})
    assert row.verdict == "unverified"


def test_without_a_configured_strategy_there_is_no_mismatch() -> None:
    assert judged(*even("x", 2, "a", "b"), counts={"x": 2}).strategy_mismatch is None


def test_a_static_member_s_return_after_skipped_generations_may_be_all_that_is_left_of_one() -> None:
    def static(topics: Sequence[str], assigned: Sequence[int]) -> Member:
        return make_member("a", topics, {"x": assigned}, group_instance_id="i1")

    life = Life.after(
        make_record(5, (static(("x",), (0, 1)),)), make_record(9, (static(("y",), (0, 1)),), generation=4)
    )
    life.take(make_observation(10, make_topic("x", 2), make_topic("y", 1)))
    assert [row.verdict for row in life.rows.drift] == ["identical", "unverified"]
