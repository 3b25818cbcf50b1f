"""Verdicts: every expected assignment here is written out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from streaming.groups.config import GroupConfig
from streaming.groups.facts import DriftedPartition, DriftRow
from streaming.groups.inputs import Member
from tests.groups.build import (
    CONFIG,
    GROUP,
    LOG_PARTITION,
    MINUTE,
    SECOND,
    START,
    Life,
    even,
    make_member,
    make_others,
    make_record,
    make_tick,
    make_tombstone,
    make_topic,
)

LIBRDKAFKA: dict[str, Any] = {"user_data": b"", "client_id": "rdkafka"}
KAFKA_PYTHON: dict[str, Any] = {"user_data": b"", "subscription_version": 0, "client_id": "kafka-python-3.0.12"}
JAVA: dict[str, Any] = {}


def seen_for_long(life: Life, *topics: tuple[str, int]) -> None:
    """Rounds have shown these topics for longer than the grace, up to record 2000."""
    for position in (1, 1990):
        life.take(make_tick(position, *(make_topic(topic, count) for topic, count in topics)))
    life.rows.drift.clear()


def verdict_of(life: Life) -> DriftRow:
    (row,) = life.rows.drift
    return row


def judged(*members: Member, counts: Mapping[str, int | None], protocol: str = "range", **changes: Any) -> DriftRow:
    """The verdict of a first decision, by the round right after it."""
    life = Life()
    life.take(
        make_record(5, members, protocol=protocol, **changes),
        make_tick(10, *(make_topic(topic, count) for topic, count in counts.items())),
    )
    return verdict_of(life)


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
    assert row.matched_library is not None
    assert row.matched_library.startswith("librdkafka")


def test_a_leader_of_kafka_python_that_loses_a_member_is_identical() -> None:
    # a (dynamic), b (static), c (dynamic): itertools.groupby over unsorted members forgets a (kafka.md 7).
    row = judged(
        make_member("a", ("x",), {}, **KAFKA_PYTHON),
        make_member("b", ("x",), {"x": (0, 1)}, group_instance_id="i", **KAFKA_PYTHON),
        make_member("c", ("x",), {"x": (2,)}, **KAFKA_PYTHON),
        counts={"x": 3},
    )
    assert row.verdict == "identical"
    assert str(row.matched_library).startswith("kafka-python")


def test_the_same_loss_under_a_java_leader_is_drifted() -> None:
    life = Life()
    life.take(make_record(1, generation=0, protocol_type=""), make_tick(2))
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
        make_tick(10, make_topic("x", 3)),
    )
    row = verdict_of(life)
    assert row.verdict == "drifted"
    # Java: static b first, then a and c: one each.
    assert row.drifted_partitions == (DriftedPartition("x", 1, "misplaced", "a", ("b",)),)


def test_everything_on_one_member_is_drifted_though_the_topic_was_first_seen_seconds_ago() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0, 1, 2, 3)}),
        make_member("b", ("x",), {}),
        counts={"x": 4},
    )
    assert (row.verdict, row.candidates > 0, row.drifted_count) == ("drifted", True, 2)
    assert row.drifted_partitions == (
        DriftedPartition("x", 2, "misplaced", "b", ("a",)),
        DriftedPartition("x", 3, "misplaced", "b", ("a",)),
    )


def test_the_row_tells_decision_and_round() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2})
    assert (row.cluster, row.group_id, row.log_partition, row.record_offset) == ("test", GROUP, LOG_PARTITION, 5)
    assert (row.record_time, row.round, row.round_time) == (START + 5 * SECOND, 10, START + 10 * SECOND)
    assert (row.incarnation, row.generation, row.strategy) == (5, 1, "range")


def test_a_leader_with_old_metadata_within_grace_is_not_drifted() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(
        make_tick(1995, make_topic("x", 4)),  # two partitions more, which the leader has not seen
        make_record(2000, even("x", 2, "a", "b")),
        make_tick(2005, make_topic("x", 4)),
    )
    assert verdict_of(life).verdict == "identical"


def test_a_leader_that_knows_new_partitions_before_the_round_does_is_identical() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_tick(2005, make_topic("x", 4)))
    assert verdict_of(life).verdict == "identical"


def test_a_leader_ahead_of_the_probe_s_broker_waits_for_the_next_round() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_tick(2005, make_topic("x", 2)))
    assert life.rows.drift == []
    assert life.rows.group_health[-1].verdict == "pending"
    life.take(make_tick(2015, make_topic("x", 4)))
    assert (verdict_of(life).verdict, verdict_of(life).round) == ("identical", 2015)


def test_a_partition_that_no_round_shows_within_grace_is_drifted() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_tick(2005, make_topic("x", 2)))
    life.take(make_tick(2000 + 600, make_topic("x", 2)))
    row = verdict_of(life)
    assert (row.verdict, row.reason) == ("drifted", "invariants are violated, whoever led")
    assert row.drifted_partitions == (
        DriftedPartition("x", 2, "misplaced", None, ("b",)),
        DriftedPartition("x", 3, "misplaced", None, ("b",)),
    )


def test_a_count_beyond_all_rounds_is_not_judged_for_a_topic_that_was_made_again() -> None:
    life = Life()
    seen_for_long(life, ("x", 4))
    life.take(
        make_record(2000, even("x", 6, "a", "b")),
        make_tick(2005, make_topic("x", 2, topic_id="another")),
        make_tick(2700, make_topic("x", 2, topic_id="another")),
    )
    assert verdict_of(life).verdict == "valid_unverified"


def test_a_leader_with_metadata_older_than_the_grace_leaves_partitions_unassigned() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_tick(2000, make_topic("x", 4)))
    late = 2000 + 700
    life.take(
        make_tick(late - 5, make_topic("x", 4)),
        make_record(late, even("x", 2, "a", "b")),
        make_tick(late + 5, make_topic("x", 4)),
    )
    row = verdict_of(life)
    # a should have 0 and 1, b 2 and 3; a has 0, b has 1.
    assert row.verdict == "drifted"
    assert row.drifted_partitions == (
        DriftedPartition("x", 1, "misplaced", "a", ("b",)),
        DriftedPartition("x", 2, "unassigned", "b", ()),
        DriftedPartition("x", 3, "unassigned", "b", ()),
    )


def test_a_fitting_count_that_no_round_has_seen_is_not_verified_while_the_rounds_are_young() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 4})
    assert row.verdict == "valid_unverified"
    assert row.reason == "it fits a partition count of topic 'x' that no round has seen (2; seen: 4)"


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_sticky_strategies_are_not_recomputed_yet(strategy: str) -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2}, protocol=strategy)
    assert row.verdict == "valid_unverified"
    assert row.reason is not None
    assert "not recomputed yet" in row.reason


def test_an_unknown_strategy_is_not_verified() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2}, protocol="house-blend")
    assert (row.verdict, row.reason) == ("valid_unverified", "strategy 'house-blend' is not known")


def test_an_undecodable_member_is_named_with_its_reason() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0,)}),
        make_member("b", None, undecodable="subscription: 3 bytes are missing"),
        counts={"x": 2},
    )
    assert (row.verdict, row.reason) == ("valid_unverified", "member 'b': subscription: 3 bytes are missing")


def test_a_leader_that_is_no_member_is_not_verified() -> None:
    row = judged(*even("x", 2, "a", "b")[::-1], counts={"x": 2}, leader="gone")
    assert row.verdict == "valid_unverified"


def test_members_with_racks_are_not_verified_while_racks_are_not_compared() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (1,)}, rack="r1"),
        make_member("b", ("x",), {"x": (0,)}, rack="r2"),
        counts={"x": 2},
    )
    assert row.verdict == "valid_unverified"


def test_a_downgrade_is_not_verified() -> None:
    life = Life()
    life.take(
        *(make_others(key_type, at, tombstone=at > 13) for at, key_type in enumerate((5, 3, 7, 6, 8, 7, 6, 5, 3), 10)),
        make_record(19, (make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), {})), generation=12),
        make_tick(30, make_topic("x", 2)),
    )
    row = verdict_of(life)
    assert row.verdict == "valid_unverified"
    assert row.reason == "the group came from the consumer protocol of KIP-848: a server made this assignment"


def test_the_decision_after_a_downgrade_is_verified_again() -> None:
    life = Life()
    life.take(make_others(3, 10), make_tick(11), make_others(3, 18, tombstone=True))
    life.take(
        make_record(19, even("x", 2, "a", "b"), generation=12),
        make_record(25, even("x", 2, "a", "b"), generation=13),
        make_tick(30, make_topic("x", 2)),
    )
    assert [row.verdict for row in life.rows.drift] == ["valid_unverified", "identical"]


def test_an_empty_group_is_not_applicable() -> None:
    row = judged(counts={})
    assert (row.verdict, row.reason) == ("not_applicable", "the group is empty")


def test_a_connect_group_is_not_applicable() -> None:
    row = judged(
        make_member("w1", None, assigned=None, user_data=None), counts={}, protocol_type="connect", protocol="sessioned"
    )
    assert (row.verdict, row.reason) == ("not_applicable", "protocol type 'connect' assigns no topic partitions")


def test_a_decision_is_pending_until_a_round_beyond_its_record() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a", "b")), make_tick(5, make_topic("x", 2)))
    assert life.rows.drift == []
    life.take(make_tick(6, make_topic("x", 2)))
    assert verdict_of(life).verdict == "identical"
    assert life.rows.group_health[-1].verdict == "identical"


def test_a_decision_is_pending_while_a_subscribed_topic_has_not_been_shown() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a", "b")), make_tick(10), make_tick(20))
    assert life.rows.drift == []
    assert life.rows.group_health[-1].verdict == "pending"
    life.take(make_tick(30, make_topic("x", 2)))
    assert verdict_of(life).verdict == "identical"


def test_a_topic_that_is_never_shown_leaves_the_decision_unverified_after_the_grace() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a", "b")), make_tick(10), make_tick(605))
    row = verdict_of(life)
    assert (row.verdict, row.reason) == (
        "valid_unverified",
        "no round has shown topic 'x': its partition count is not known",
    )


def test_a_topic_outside_the_filters_is_not_waited_for() -> None:
    life = Life(GroupConfig(cluster="test", watches_topic=lambda topic: topic != "x"))
    life.take(make_record(5, even("x", 2, "a", "b")), make_tick(10))
    assert verdict_of(life).verdict == "valid_unverified"
    assert "excluded by the filters" in str(verdict_of(life).reason)


def test_a_topic_that_does_not_exist_has_no_partitions_to_give() -> None:
    row = judged(make_member("a", ("x", "not-there"), {"x": (0,)}), counts={"x": 1, "not-there": None})
    assert row.verdict == "identical"


def test_a_later_verdict_ends_the_waiting_of_earlier_decisions() -> None:
    life = Life()
    life.take(
        make_record(5, even("unseen", 2, "a", "b")),
        make_record(6, even("x", 2, "a", "b"), generation=2),
        make_tick(10, make_topic("x", 2)),
    )
    assert [(row.record_offset, row.verdict) for row in life.rows.drift] == [(5, "valid_unverified"), (6, "identical")]
    assert life.rows.group_health[-1].verdict == "identical"


def test_a_partition_assigned_twice_is_drifted_for_any_strategy() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0, 1)}),
        make_member("b", ("x",), {"x": (1,)}),
        counts={"x": 2},
        protocol="house-blend",
    )
    assert row.verdict == "drifted"
    assert row.drifted_partitions == (DriftedPartition("x", 1, "doubly_assigned", None, ("a", "b")),)


def test_a_topic_that_the_member_did_not_ask_for_is_drifted() -> None:
    row = judged(
        make_member("a", ("x",), {"x": (0,), "y": (0,)}), make_member("b", ("y",), {"y": (1,)}), counts={"x": 1, "y": 2}
    )
    assert row.verdict == "drifted"
    assert row.drifted_partitions == (DriftedPartition("y", 0, "not_subscribed", None, ("a",)),)


def test_a_topic_that_nobody_asked_for_is_drifted_for_any_strategy() -> None:
    row = judged(make_member("a", ("x",), {"x": (0,), "y": (0,)}), counts={"x": 1, "y": 1}, protocol="stream")
    assert row.verdict == "drifted"


def test_a_foreign_assignor_may_give_what_only_the_leader_knows_of_yet() -> None:
    # Kafka Streams with a pattern: the leader has seen topic y, the other member has not.
    row = judged(
        make_member("a", ("x", "y"), {"x": (0,)}),
        make_member("b", ("x",), {"y": (0,)}),
        counts={"x": 1, "y": 1},
        protocol="stream",
    )
    assert row.verdict == "valid_unverified"


def test_the_first_record_of_static_members_may_be_a_member_s_return() -> None:
    # Read after compaction: b came back with topic y only, and still has its old partition of x.
    members = (
        make_member("a", ("x",), {"x": (0,)}, group_instance_id="i1"),
        make_member("b", ("y",), {"x": (1,)}, group_instance_id="i2"),
    )
    row = judged(*members, counts={"x": 2, "y": 1}, generation=4)
    assert row.verdict == "valid_unverified"
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
    life.take(make_record(5, (a, b)), make_tick(6, make_topic("x", 2)), make_record(7, (a, back)))
    life.take(make_tick(10, make_topic("x", 2), make_topic("y", 1)))
    assert [row.record_offset for row in life.rows.drift] == [5]
    assert life.rows.group_health[-1].verdict == "identical"


def test_a_record_that_no_leader_could_have_seen_is_not_verified() -> None:
    row = judged(make_member("a", ("x",), {"x": (0,)}), make_member("a", ("x",), {"x": (1,)}), counts={"x": 2})
    assert row.verdict == "valid_unverified"


def test_partition_numbers_that_no_topic_has_are_not_recomputed() -> None:
    life = Life()
    life.take(make_record(5, (make_member("a", ("x",), {"x": (2**31 - 2,)}),)), make_tick(10, make_topic("x", 2)))
    life.take(make_tick(1000, make_topic("x", 2)))
    assert verdict_of(life).verdict == "valid_unverified"


def test_a_record_from_the_future_is_not_verified() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2}, time=2**62)
    assert row.verdict == "valid_unverified"


def test_after_too_many_decisions_without_a_round_the_oldest_are_not_recomputed() -> None:
    life = Life()
    for generation in range(1, 71):
        life.take(make_record(generation, even("x", 2, "a", "b"), generation=generation))
    life.take(make_tick(100, make_topic("x", 2)))
    verdicts = [row.verdict for row in life.rows.drift]
    assert verdicts == ["valid_unverified"] * 6 + ["identical"] * 64


def test_the_strategy_is_compared_with_the_configured_one() -> None:
    life = Life(GroupConfig(cluster="test", expected_strategy=lambda _: "cooperative-sticky"))
    life.take(make_record(5, even("x", 2, "a", "b")), make_tick(10, make_topic("x", 2)))
    row = verdict_of(life)
    assert (row.verdict, row.expected_strategy, row.strategy_mismatch) == ("identical", "cooperative-sticky", True)


def test_without_a_configured_strategy_there_is_no_mismatch() -> None:
    assert judged(*even("x", 2, "a", "b"), counts={"x": 2}).strategy_mismatch is None


def test_the_grace_is_ten_minutes_unless_configured() -> None:
    assert CONFIG.metadata_grace_ms == 10 * MINUTE


def test_a_deleted_group_s_last_decision_still_gets_its_verdict() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a", "b")), make_tick(10))
    life.take(make_tombstone(12), make_tick(20, gone="deleted"))
    assert verdict_of(life).verdict == "valid_unverified"


def test_a_leader_of_kafka_python_may_lack_the_metadata_of_the_other_members_topics() -> None:
    # It assigns without waiting for it, so nobody gets y; Java would have waited.
    members = (make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("y",), {}))
    of_kafka_python = tuple(msgspec.structs.replace(m, **KAFKA_PYTHON) for m in members)
    for group, expected in ((of_kafka_python, "identical"), (members, "drifted")):
        life = Life()
        seen_for_long(life, ("x", 2), ("y", 2))
        life.take(make_record(2000, group), make_tick(2005, make_topic("x", 2), make_topic("y", 2)))
        assert verdict_of(life).verdict == expected


def test_a_count_between_two_that_were_seen_may_have_been_in_force_between_two_rounds() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_tick(2005, make_topic("x", 6)))
    assert verdict_of(life).verdict == "valid_unverified"


def test_a_static_member_s_return_after_skipped_generations_may_be_all_that_is_left_of_one() -> None:
    def static(topics: Sequence[str], assigned: Sequence[int]) -> Member:
        return make_member("a", topics, {"x": assigned}, group_instance_id="i1")

    life = Life()
    life.take(make_record(5, (static(("x",), (0, 1)),)), make_record(9, (static(("y",), (0, 1)),), generation=4))
    life.take(make_tick(10, make_topic("x", 2), make_topic("y", 1)))
    assert [row.verdict for row in life.rows.drift] == ["identical", "valid_unverified"]
