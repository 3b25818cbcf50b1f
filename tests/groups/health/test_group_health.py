"""Findings: those that hold at a round, and their beginnings."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig
from tests.groups.build import (
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)
from tests.groups.health.findings import detail, found

GRACE = 600


def grown() -> Life:
    """A group of two whose topic got two more partitions, first seen at 50."""
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10, make_topic("x", 2)))
    assert found(life) == []
    life.take(make_observation(50, make_topic("x", 4)))
    return life


def test_new_partitions_are_stale_metadata_since_the_round_that_showed_them() -> None:
    life = grown()
    life.take(make_observation(70, make_topic("x", 4)))
    assert found(life) == [("stale_metadata", 50)]
    assert detail(life) == "new partitions that the leader has not seen: x (2 to 4 partitions)"


def test_the_grace_begins_when_a_topic_first_grows_and_not_anew_when_it_grows_again() -> None:
    life = grown()
    life.take(make_observation(50 + GRACE - 1, make_topic("x", 6)))
    assert found(life) == [("stale_metadata", 50)]
    life.take(make_observation(50 + GRACE, make_topic("x", 6)))
    assert found(life) == [("unassigned", 50)]
    assert detail(life) == "partitions without an owner: x (2 to 6 partitions)"


def test_stale_metadata_is_gone_when_the_leader_sees_the_partitions() -> None:
    life = grown()
    life.take(make_record(80, even("x", 4, "a", "b"), generation=2), make_observation(90, make_topic("x", 4)))
    assert found(life) == []
    assert [row.verdict for row in life.rows.drift] == ["identical", "identical"]


def test_stale_metadata_becomes_unassigned_after_the_grace() -> None:
    life = grown()
    life.take(make_observation(50 + GRACE - 1, make_topic("x", 4)))
    assert found(life) == [("stale_metadata", 50)]
    life.take(make_observation(50 + GRACE, make_topic("x", 4)))
    assert found(life) == [("unassigned", 50)]
    assert detail(life) == "partitions without an owner: x (2 to 4 partitions)"
    assert [row.verdict for row in life.rows.drift] == ["identical"]


def test_a_new_decision_begins_the_grace_anew() -> None:
    life = grown()
    life.take(make_record(500, even("x", 2, "a", "b"), generation=2), make_observation(800, make_topic("x", 4)))
    assert found(life) == [("stale_metadata", 50)]


def test_partitions_that_were_there_before_the_group_was_first_seen_get_the_grace_too() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(2000, make_topic("x", 4)))
    assert found(life) == [("stale_metadata", 2000)]


def test_a_subscribed_topic_that_no_round_shows_is_unseen() -> None:
    life = Life.after(
        make_record(5, (make_member("a", ("x", "y"), {"x": (0,)}),)), make_observation(10, make_topic("x", 1))
    )
    life.take(make_observation(20, make_topic("x", 1), make_topic("y", None)))
    assert found(life) == [("topic_not_visible", 10)]
    assert detail(life) == "subscribed, but not visible: y"
    life.take(make_observation(30, make_topic("x", 1), make_topic("y", 1)))
    assert [name for name, _ in found(life)] == ["stale_metadata"]


def test_a_topic_outside_the_filters_is_not_called_unseen() -> None:
    life = Life(GroupConfig(cluster="test", watches_topic=lambda topic: topic != "y"))
    life.take(make_record(5, (make_member("a", ("x", "y"), {"x": (0,)}),)), make_observation(10, make_topic("x", 1)))
    assert found(life) == []


def test_a_held_log_is_told_since_the_probe_saw_it() -> None:
    life = Life.after(
        make_commit(5, 1, topic="x"), make_observation(10, make_topic("x", 1), held_since=START + 3 * SECOND)
    )
    assert found(life) == [("offsets_blocked", 3)]
    assert f"partition {LOG_PARTITION} " in detail(life)
    life.take(make_observation(20, make_topic("x", 1)))
    assert found(life) == []


BLOCKED = {"held_since": START + 12 * SECOND}


def test_while_the_log_is_blocked_nothing_new_is_found_about_a_membership_that_may_have_changed() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b")), make_observation(10, make_topic("x", 2)))
    life.take(make_observation(20, make_topic("x", 4), make_topic("y", 1), **BLOCKED))
    life.take(make_observation(2_000, make_topic("x", 4), **BLOCKED))
    assert found(life) == [("offsets_blocked", 12)]
    # The record that nobody could read: the group had rebalanced long ago.
    life.take(make_record(30, even("x", 4, "a", "b"), generation=2), make_observation(2_010, make_topic("x", 4)))
    assert found(life) == []


def test_what_was_found_before_the_log_was_blocked_stays_as_it_was() -> None:
    life = grown()
    assert found(life) == [("stale_metadata", 50)]
    life.take(make_observation(2_000, make_topic("x", 4), **BLOCKED))
    assert found(life) == [("offsets_blocked", 12), ("stale_metadata", 50)]
    life.take(make_observation(2_010, make_topic("x", 4)))
    assert found(life) == [("unassigned", 50)]
    life.take(make_observation(2_020, make_topic("x", 4), **BLOCKED))
    assert found(life) == [("offsets_blocked", 12), ("unassigned", 50)]


def test_a_transfer_does_not_become_a_lack_of_owners_while_the_log_is_blocked() -> None:
    life = partitions_pending_handover()
    life.take(make_observation(15 + 400, make_topic("x", 3), **BLOCKED))
    assert found(life) == [("offsets_blocked", 12), ("partitions_pending_handover", 15)]
    life.take(make_observation(15 + 410, make_topic("x", 3)))
    assert found(life) == [("unassigned", 15)]


def partitions_pending_handover() -> Life:
    life = Life.after(make_cooperative(5, 1, a=(0, 1, 2)), make_observation(10, make_topic("x", 3)))
    life.take(make_cooperative(15, 2, a=(0,), b=()), make_observation(20, make_topic("x", 3)))
    return life


def test_partitions_between_two_owners_are_in_transfer() -> None:
    life = partitions_pending_handover()
    assert found(life) == [("partitions_pending_handover", 15)]
    assert detail(life) == "2 partitions given up by one member and not yet given to the next"


def test_a_transfer_ends_with_the_next_generation() -> None:
    life = partitions_pending_handover()
    life.take(make_cooperative(25, 3, a=(0,), b=(1, 2)), make_observation(30, make_topic("x", 3)))
    assert found(life) == []


def test_a_transfer_longer_than_the_rebalance_timeout_is_unassigned() -> None:
    life = partitions_pending_handover()
    life.take(make_observation(15 + 300, make_topic("x", 3)))
    assert found(life) == [("partitions_pending_handover", 15)]
    life.take(make_observation(15 + 301, make_topic("x", 3)))
    assert found(life) == [("unassigned", 15)]


def test_a_transfer_of_partitions_that_no_longer_exist_is_over() -> None:
    life = partitions_pending_handover()
    life.take(make_observation(400, make_topic("x", 1)))
    assert found(life) == [("idle_members", 15)]


def test_a_transfer_of_a_deleted_topic_is_over() -> None:
    life = partitions_pending_handover()
    life.take(make_observation(400, make_topic("x", None)))
    assert [name for name, _ in found(life)] == ["topic_not_visible"]


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "stream"])
def test_holes_of_a_group_first_seen_in_the_middle_of_a_transfer_are_no_finding(strategy: str) -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0, 2)}), make_member("b", ("x",), {}))
    life.take(make_record(5, members, generation=8, protocol=strategy), make_observation(10, make_topic("x", 3)))
    assert found(life) == []


def test_holes_that_stay_longer_than_the_rebalance_timeout_are_unassigned() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0, 2)}), make_member("b", ("x",), {}))
    life.take(make_record(5, members, generation=8, protocol="house-blend"))
    life.take(make_observation(10, make_topic("x", 3)), make_observation(306, make_topic("x", 3)))
    assert found(life) == [("unassigned", 5)]
    assert detail(life) == "partitions without an owner: x (1 partition)"


def test_holes_under_an_eager_strategy_are_unassigned_at_once() -> None:
    life = Life.after(
        make_record(5, (make_member("a", ("x",), {"x": (0, 2)}),)), make_observation(10, make_topic("x", 3))
    )
    assert found(life) == [("unassigned", 5)]


def test_members_that_cannot_be_decoded_give_no_finding_about_partitions() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0,)}), make_member("b", ("x",), None, undecodable="assignment: cut"))
    life.take(
        make_record(5, members), make_observation(3000, make_topic("x", 3)), make_observation(9000, make_topic("x", 3))
    )
    assert found(life) == []


def test_a_group_that_has_ended_has_no_finding_about_partitions() -> None:
    life = grown()
    life.take(make_tombstone(60), make_observation(70, make_topic("x", 4)))
    assert found(life) == []


def test_at_most_three_topics_are_named() -> None:
    life = Life()
    topics = ("t1", "t2", "t3", "t4", "t5")
    life.take(make_record(5, (make_member("a", topics, {}),)), make_observation(10))
    assert detail(life) == "subscribed, but not visible: t1, t2, t3 and 2 more"


def test_a_finding_names_three_and_counts_the_others() -> None:
    life = Life.after(make_record(5, even("x", 2, "a", "b", topics=("x", "v1", "v2", "v3", "v4", "v5"))))
    life.take(make_observation(10, make_topic("x", 2)))
    assert detail(life) == "subscribed, but not visible: v1, v2, v3 and 2 more"


DAY_S = 86_400


@pytest.mark.parametrize("ahead", [0, DAY_S])
def test_partitions_without_an_owner_are_found_also_where_the_coordinators_clock_is_a_day_ahead(ahead: int) -> None:
    life = Life.after(
        make_record(5, even("x", 2, "a", "b"), time=START + (5 + ahead) * SECOND),
        make_observation(10, make_topic("x", 2)),
    )
    for at in (20, 30, 1_000):
        life.take(make_observation(at, make_topic("x", 4)))
    assert found(life) == [("unassigned", 20)]


@pytest.mark.parametrize(("ahead", "since"), [(0, 15), (DAY_S, 20)])
def test_a_handover_that_never_ends_is_found_also_where_the_coordinators_clock_is_a_day_ahead(
    ahead: int, since: int
) -> None:
    life = Life.after(make_cooperative(5, 1, a=(0, 1, 2)), make_observation(10, make_topic("x", 3)))
    second = msgspec.structs.replace(make_cooperative(15, 2, a=(0,), b=()), record_time=START + (15 + ahead) * SECOND)
    life.take(second, make_observation(20, make_topic("x", 3)))
    assert found(life) == [("partitions_pending_handover", since)]
    life.take(make_observation(30, make_topic("x", 3)), make_observation(1_000, make_topic("x", 3)))
    assert found(life) == [("unassigned", since)]
