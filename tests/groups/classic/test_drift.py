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


def on_x(name: str, *partitions: int, **changes: Any) -> Member:
    return make_member(name, ("x",), {"x": partitions} if partitions else {}, **changes)


CLIENTS = {"java": JAVA, "librdkafka": LIBRDKAFKA, "kafka-python": KAFKA_PYTHON}
CUT = make_member("b", None, undecodable="subscription: 3 bytes are missing")
TWICE = DriftedPartition("x", 1, "doubly_assigned", None, ("a", "b"))
NOT_DRIFTED = {"verdict": "identical", "reason": None, "drifted_count": 0, "drifted_partitions": ()}


@pytest.mark.parametrize(
    ("members", "given", "columns"),
    [
        *(
            pytest.param(
                [
                    make_member("a", ("x", "y"), {"x": (0, 1), "y": (0,)}, **client),
                    make_member("b", ("x", "y"), {"x": (2,), "y": (1,)}, **client),
                    make_member("c", ("x", "y"), {"x": (3,)}, **client),
                ],
                {"counts": {"x": 4, "y": 2}},
                NOT_DRIFTED,
                id=f"range over two topics by {name}",
            )
            for name, client in CLIENTS.items()
        ),
        *(
            pytest.param(
                [
                    make_member("a", ("x", "y"), {"x": (0, 2), "y": (1,)}, **client),
                    make_member("b", ("x", "y"), {"x": (1,), "y": (0,)}, **client),
                ],
                {"counts": {"x": 3, "y": 2}, "protocol": "roundrobin"},
                NOT_DRIFTED,
                id=f"roundrobin over two topics by {name}",
            )
            for name, client in CLIENTS.items()
        ),
        pytest.param(
            [on_x("a", 0, **LIBRDKAFKA), on_x("b", 1, **LIBRDKAFKA)],
            {"counts": {"x": 2}},
            {"matching_library": "librdkafka:2.2"},
            id="the library that fits is named",
        ),
        # a (dynamic), b (static), c (dynamic): itertools.groupby over unsorted members drops a.
        pytest.param(
            [
                on_x("a", **KAFKA_PYTHON),
                on_x("b", 0, 1, group_instance_id="i", **KAFKA_PYTHON),
                on_x("c", 2, **KAFKA_PYTHON),
            ],
            {"counts": {"x": 3}},
            {"verdict": "identical", "matching_library": "kafka-python:2.3"},
            id="a leader of kafka-python that loses a member",
        ),
        pytest.param(
            [on_x("a", 0, 1, 2, 3), on_x("b")],
            {"counts": {"x": 4}},
            {
                "verdict": "drifted",
                "basis": "promise",
                "drifted_count": 2,
                "reason": "range gives members with equal subscriptions as many partitions of topic 'x' as it can: "
                "member 'a' has 4, and 'b' has 0",
                "drifted_partitions": tuple(DriftedPartition("x", n, "misplaced", "b", ("a",)) for n in (2, 3)),
            },
            id="everything on one member, though the topic was first seen seconds ago",
        ),
        pytest.param(
            even("x", 2, "a", "b"),
            {"counts": {"x": 2}},
            {
                "cluster": "test",
                "group_id": GROUP,
                "log_partition": LOG_PARTITION,
                "decision": 5,
                "record_time": START + 5 * SECOND,
                "round": 10,
                "round_time": START + 10 * SECOND,
                "incarnation": 5,
                "generation": 1,
                "strategy": "range",
                "strategy_mismatch": None,
            },
            id="the row tells decision and round",
        ),
        pytest.param(
            even("x", 2, "a", "b"),
            {"counts": {"x": 2}, "protocol": "house-blend"},
            {"verdict": "unverified", "reason": "strategy 'house-blend' is not known"},
            id="an unknown strategy",
        ),
        pytest.param(
            [on_x("a", 0, 1), make_member("b", None, {"x": (1,)}, undecodable="subscription: 3 bytes are missing")],
            {"counts": {"x": 2}},
            {"verdict": "drifted", "basis": "invariant", "drifted_partitions": (TWICE,)},
            id="two owners beside a subscription that cannot be read",
        ),
        pytest.param(
            [on_x("a", 0), CUT],
            {"counts": {"x": 2}},
            {"verdict": "unverified", "reason": "member 'b': subscription: 3 bytes are missing"},
            id="an undecodable member is named with its reason",
        ),
        pytest.param(
            even("x", 2, "a", "b")[::-1],
            {"counts": {"x": 2}, "leader": "gone"},
            {"verdict": "identical"},
            id="every library is tried where the leader is no member",
        ),
        pytest.param(
            [], {"counts": {}}, {"verdict": "not_applicable", "reason": "the group is empty"}, id="an empty group"
        ),
        pytest.param(
            [make_member("w1", None, assigned=None, user_data=None)],
            {"counts": {}, "protocol_type": "sr", "protocol": "v0"},
            {"verdict": "not_applicable", "reason": "protocol type 'sr' assigns no topic partitions"},
            id="a schema registry's group",
        ),
        pytest.param(
            [on_x("a", 0, 1), on_x("b", 1)],
            {"counts": {"x": 2}, "protocol": "house-blend"},
            {
                "verdict": "drifted",
                "basis": "invariant",
                "reason": "partitions have two owners",
                "drifted_partitions": (TWICE,),
            },
            id="a partition assigned twice is drifted for any strategy",
        ),
        # Kafka Streams with a pattern: the leader has seen topic y, but the other member has not.
        pytest.param(
            [make_member("a", ("x", "y"), {"x": (0,)}), make_member("b", ("x",), {"y": (0,)})],
            {"counts": {"x": 1, "y": 1}, "protocol": "stream"},
            {"verdict": "unverified"},
            id="a foreign assignor may give what only the leader knows of yet",
        ),
        # Read after compaction: b returned with only topic y, and still has its old partition of x.
        *(
            pytest.param(
                [other, make_member("b", ("y",), {"x": (1,)}, group_instance_id="i2")],
                {"counts": {"x": 2, "y": 1}, "generation": 4, "configured": declared("java:3.7.1")},
                {
                    "verdict": "unverified",
                    "reason": "no candidate fits, but this may be the record of a static member's return, which no "
                    "leader decided",
                },
                id=f"the first record of a static member and a {kind} one may be the former's return",
            )
            for kind, other in (("static", on_x("a", 0, group_instance_id="i1")), ("dynamic", on_x("a", 0)))
        ),
        pytest.param(
            [on_x("a", 0, group_instance_id="i1"), on_x("b", 1, group_instance_id="i2")],
            {"counts": {"x": 2}, "generation": 4},
            {"verdict": "identical"},
            id="static members that fit are identical at first sight",
        ),
        pytest.param(
            [on_x("a", 0), on_x("a", 1)],
            {"counts": {"x": 2}},
            {"verdict": "unverified"},
            id="a record that no leader could have seen",
        ),
    ],
)
def test_the_verdict_on_a_first_decision(
    members: Sequence[Member], given: dict[str, Any], columns: dict[str, object]
) -> None:
    row = judged(*members, **given)
    assert {name: getattr(row, name) for name in columns} == columns


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


def test_a_static_member_s_return_after_skipped_generations_may_be_all_that_is_left_of_one() -> None:
    def static(topics: Sequence[str], assigned: Sequence[int]) -> Member:
        return make_member("a", topics, {"x": assigned}, group_instance_id="i1")

    life = Life.after(
        make_record(5, (static(("x",), (0, 1)),)),
        make_record(9, (static(("y",), (0, 1)),), generation=4),
        make_observation(10, make_topic("x", 2), make_topic("y", 1)),
    )
    assert [row.verdict for row in life.rows.drift] == ["identical", "unverified"]


def test_a_decision_that_a_later_round_may_explain_is_pending_whatever_was_said_of_the_one_before() -> None:
    life = Life.after(make_record(10, even("x", 4, "a", "b")), make_observation(100, make_topic("x", 4)))
    assert life.rows.group_health[-1].verdict == "identical"
    # The leader has seen six partitions; no round has yet.
    grown = make_record(101, even("x", 6, "a", "b"), generation=2)
    life.take(grown, make_observation(103, make_topic("x", 4)))
    health = life.rows.group_health[-1]
    assert (health.verdict, health.verdict_reason) == ("pending", "no round has judged the newest decision yet")
