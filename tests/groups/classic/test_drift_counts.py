"""Verdicts and partition counts: those the leader may have known, those of the rounds, and their times."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig
from streaming.groups.rows import DriftedPartition, DriftRow
from streaming.records import GroupObservation, Member
from tests.groups.build import (
    CONFIG,
    MINUTE,
    SECOND,
    START,
    Life,
    declared,
    even,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)
from tests.groups.verdicts import KAFKA_PYTHON, judged, seen_for_long, verdict_of


def test_a_leader_with_old_metadata_within_grace_is_not_drifted() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(
        make_observation(1995, make_topic("x", 4)),  # two more partitions, which the leader has not seen
        make_record(2000, even("x", 2, "a", "b")),
        make_observation(2005, make_topic("x", 4)),
    )
    assert verdict_of(life).verdict == "identical"


def test_a_leader_that_knows_new_partitions_before_the_round_does_is_identical() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_observation(2005, make_topic("x", 4)))
    assert verdict_of(life).verdict == "identical"


def test_a_leader_ahead_of_the_probe_s_broker_waits_for_the_next_round() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_observation(2005, make_topic("x", 2)))
    assert life.rows.drift == []
    assert life.rows.group_health[-1].verdict == "pending"
    life.take(make_observation(2015, make_topic("x", 4)))
    assert (verdict_of(life).verdict, verdict_of(life).round) == ("identical", 2015)


def test_a_partition_that_no_round_shows_within_grace_is_drifted() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_observation(2005, make_topic("x", 2)))
    life.take(make_observation(2000 + 600, make_topic("x", 2)))
    row = verdict_of(life)
    assert (row.verdict, row.reason) == ("drifted", "members own partitions that do not exist")
    assert row.drifted_partitions == (
        DriftedPartition("x", 2, "misplaced", None, ("b",)),
        DriftedPartition("x", 3, "misplaced", None, ("b",)),
    )


def test_a_count_beyond_all_rounds_is_not_judged_for_a_topic_that_was_made_again() -> None:
    life = Life()
    seen_for_long(life, ("x", 4))
    life.take(
        make_record(2000, even("x", 6, "a", "b")),
        make_observation(2005, make_topic("x", 2, topic_id="another")),
        make_observation(2700, make_topic("x", 2, topic_id="another")),
    )
    assert verdict_of(life).verdict == "unverified"


def test_a_leader_with_metadata_older_than_the_grace_leaves_partitions_unassigned() -> None:
    life = Life(configured=declared("java"))
    seen_for_long(life, ("x", 2))
    life.take(make_observation(2000, make_topic("x", 4)))
    late = 2000 + 700
    life.take(
        make_observation(late - 5, make_topic("x", 4)),
        make_record(late, even("x", 2, "a", "b")),
        make_observation(late + 5, make_topic("x", 4)),
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
    assert row.verdict == "unverified"
    assert row.reason == "it fits a partition count of topic 'x' that no round has seen (2; seen: 4)"


@pytest.mark.parametrize(("closed", "verdict"), [(2599, "unverified"), (2600, "drifted")])
def test_the_closing_of_a_group_judges_by_its_own_time_whether_grace_is_over(closed: int, verdict: str) -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_observation(2005, make_topic("x", 2)))
    assert life.rows.drift == []
    life.take(make_observation(closed, gone="deleted"))
    assert verdict_of(life).verdict == verdict


def test_a_decision_is_pending_until_a_round_beyond_its_record() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(5, make_topic("x", 2)))
    assert life.rows.drift == []
    life.take(make_observation(6, make_topic("x", 2)))
    assert verdict_of(life).verdict == "identical"
    assert life.rows.group_health[-1].verdict == "identical"


def test_a_decision_is_pending_while_a_subscribed_topic_has_not_been_shown() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10), make_observation(20))
    assert life.rows.drift == []
    assert (life.rows.group_health[-1].verdict, life.rows.group_health[-1].drifted_count) == ("pending", 0)
    life.take(make_observation(30, make_topic("x", 2)))
    assert verdict_of(life).verdict == "identical"


def test_a_topic_that_is_never_shown_leaves_the_decision_unverified_after_the_grace() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10), make_observation(605))
    row = verdict_of(life)
    assert (row.verdict, row.reason) == (
        "unverified",
        "no round has shown topic 'x': its partition count is not known",
    )


def test_a_topic_outside_the_filters_is_not_waited_for() -> None:
    life = Life(GroupConfig(cluster="test", watches_topic=lambda topic: topic != "x"))
    life.take(make_record(5, even("x", 2, "a", "b")), make_observation(10))
    assert verdict_of(life).verdict == "unverified"
    assert "excluded by the filters" in str(verdict_of(life).reason)


def test_a_topic_that_does_not_exist_has_no_partitions_to_give() -> None:
    row = judged(make_member("a", ("x", "not-there"), {"x": (0,)}), counts={"x": 1, "not-there": None})
    assert row.verdict == "identical"


def test_a_later_verdict_ends_the_waiting_of_earlier_decisions() -> None:
    life = Life.after(
        make_record(5, even("unseen", 2, "a", "b")),
        make_record(6, even("x", 2, "a", "b"), generation=2),
        make_observation(10, make_topic("x", 2)),
    )
    assert [(row.decision, row.verdict) for row in life.rows.drift] == [(5, "unverified"), (6, "identical")]
    assert life.rows.group_health[-1].verdict == "identical"


def test_partition_numbers_that_no_topic_has_are_not_recomputed() -> None:
    life = Life.after(
        make_record(5, (make_member("a", ("x",), {"x": (2**31 - 2,)}),)), make_observation(10, make_topic("x", 2))
    )
    life.take(make_observation(1000, make_topic("x", 2)))
    assert verdict_of(life).verdict == "unverified"


def test_a_record_from_the_future_is_not_verified() -> None:
    row = judged(*even("x", 2, "a", "b"), counts={"x": 2}, time=2**62)
    assert row.verdict == "unverified"


@pytest.mark.parametrize(("ahead", "verdict"), [(10 * MINUTE, "identical"), (10 * MINUTE + 1, "unverified")])
def test_a_record_is_from_the_future_if_its_time_is_more_than_the_grace_after_the_round(
    ahead: int, verdict: str
) -> None:
    life = Life()
    record = make_record(5, even("x", 2, "a", "b"), time=START + 10 * SECOND + ahead)
    life.take(make_observation(3, make_topic("x", 2)), record, make_observation(10, make_topic("x", 2)))
    assert verdict_of(life).verdict == verdict


def test_after_too_many_decisions_without_a_round_the_oldest_are_not_recomputed() -> None:
    life = Life()
    for generation in range(1, 71):
        life.take(make_record(generation, even("x", 2, "a", "b"), generation=generation))
    life.take(make_observation(100, make_topic("x", 2)))
    verdicts = [row.verdict for row in life.rows.drift]
    assert verdicts == ["unverified"] * 6 + ["identical"] * 64


@pytest.mark.parametrize("ahead", [0, 480, 590])
def test_a_leader_may_have_old_metadata_also_where_its_coordinators_clock_is_ahead(ahead: int) -> None:
    life = Life.after(make_record(5, even("x", 3, "a", "b")))
    life.take(*(make_observation(at, make_topic("x", 3)) for at in (10, 1_500, 2_750)))
    # The topic grew at 2755. The leader's metadata at 3005 is of 2750, and its record's time is wrong by `ahead`.
    life.take(*(make_observation(at, make_topic("x", 6)) for at in (2_760, 2_900, 2_990)))
    record = make_record(3_005, even("x", 3, "a", "b", "c"), generation=2, time=START + (3_005 + ahead) * SECOND)
    rows = life.take(record, make_observation(3_010, make_topic("x", 6)))
    assert [(row.decision, row.verdict) for row in rows.drift] == [(3_005, "identical")]


@pytest.mark.parametrize("behind", [0, 900])
def test_a_leader_may_know_partitions_before_the_rounds_do_also_where_its_coordinators_clock_is_behind(
    behind: int,
) -> None:
    life = Life.after(make_record(5, even("x", 3, "a", "b")))
    life.take(*(make_observation(at, make_topic("x", 3)) for at in (10, 1_500, 3_000)))
    # The topic grows at 3003; the leader knows that at 3005, the probe's broker only after the round at 3010.
    record = make_record(3_005, even("x", 6, "a", "b"), generation=2, time=START + (3_005 - behind) * SECOND)
    assert life.take(record, make_observation(3_010, make_topic("x", 3))).drift == []
    rows = life.take(make_observation(3_020, make_topic("x", 6)))
    assert [(row.decision, row.verdict) for row in rows.drift] == [(3_005, "identical")]


def test_the_round_before_a_waiting_decision_moves_with_a_clock_that_is_set_right() -> None:
    life = Life()

    def round_at(second: int, ahead: int = 0) -> GroupObservation:
        return make_observation(
            second, make_topic("x", 3), time=START + (second + ahead) * SECOND, elapsed=second * SECOND
        )

    # The clock of the rounds was an hour ahead when the group was met, and is set right after the decision.
    life.take(make_record(5, even("x", 3, "a", "b")), round_at(10, ahead=3_600))
    life.take(make_record(15, even("x", 6, "a", "b"), generation=2), round_at(20), round_at(30))
    assert life.state is not None
    [waiting] = life.state.classic.waiting
    assert waiting.after_round == START + 10 * SECOND


def test_the_grace_is_ten_minutes_unless_configured() -> None:
    assert CONFIG.metadata_grace_ms == 10 * MINUTE


def test_a_deleted_group_s_last_decision_still_gets_its_verdict() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10))
    life.take(make_tombstone(12), make_observation(20, gone="deleted"))
    assert verdict_of(life).verdict == "unverified"


@pytest.mark.parametrize("own", [("x",), ("x", "y")], ids=["of others", "of its own"])
def test_a_leader_of_kafka_python_may_lack_the_metadata_of_a_topic(own: tuple[str, ...]) -> None:
    # kafka-python assigns without waiting for metadata, so y stays unassigned.
    members = (make_member("a", own, {"x": (0, 1)}), make_member("b", ("y",), {}))
    of_kafka_python = tuple(msgspec.structs.replace(m, **KAFKA_PYTHON) for m in members)
    assert _seen_with_two_topics(of_kafka_python).verdict == "identical"


@pytest.mark.parametrize("own", [("x",), ("x", "y")], ids=["of others", "of its own"])
def test_it_is_no_drift_that_a_leader_of_java_lacked_a_topic(own: tuple[str, ...]) -> None:
    # Java waits for an answer, but is satisfied with the answer to an earlier request.
    row = _seen_with_two_topics((make_member("a", own, {"x": (0, 1)}), make_member("b", ("y",), {})))
    assert (row.verdict, row.matching_library) == ("unverified", None)
    assert row.reason == "it fits a leader that did not have the metadata of topic 'y' yet"


def _seen_with_two_topics(members: tuple[Member, ...]) -> DriftRow:
    life = Life()
    seen_for_long(life, ("x", 2), ("y", 2))
    life.take(make_record(2000, members), make_observation(2005, make_topic("x", 2), make_topic("y", 2)))
    return verdict_of(life)


def test_a_count_between_two_that_were_seen_may_have_been_in_force_between_two_rounds() -> None:
    life = Life()
    seen_for_long(life, ("x", 2))
    life.take(make_record(2000, even("x", 4, "a", "b")), make_observation(2005, make_topic("x", 6)))
    assert verdict_of(life).verdict == "unverified"
