"""A group from its first sign to its end: the rows, and the remaining state."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import encode_state
from streaming.groups.rows import GroupHealthRow
from streaming.records import GroupInput, GroupObservation, Seen
from tests.groups.build import (
    GROUP,
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_commits,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)
from tests.groups.modern_log import epoch, gone, metadata, read, stands, target
from tests.offsets_log.written import other_key


def health(life: Life) -> GroupHealthRow:
    return life.rows.group_health[-1]


def lived(*inputs: GroupInput) -> Life:
    return Life.after(*inputs)


# group_health.


def test_a_row_of_group_health_tells_the_group_at_a_round() -> None:
    row = health(lived(make_record(5, even("x", 3, "a", "b")), make_observation(10, make_topic("x", 3))))
    assert (row.cluster, row.cluster_id, row.group_id) == ("test", "kafka-cluster-id", GROUP)
    assert (row.log_partition, row.round, row.round_time, row.ended) == (LOG_PARTITION, 10, START + 10 * SECOND, False)
    assert (row.state, row.group_type, row.protocol_type, row.strategy) == ("Stable", "classic", "consumer", "range")
    assert (row.incarnation, row.generation, row.last_decision_time) == (5, 1, START + 5 * SECOND)
    assert (row.members, row.assigned_partitions, row.verdict, row.verdict_reason) == (2, 3, "identical", None)
    # 2 and 1 partitions: the fuller member has a third more than the mean, which is the best possible.
    assert (row.imbalance, row.imbalance_optimal) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_everything_on_one_member_is_far_above_the_least_imbalance() -> None:
    members = (make_member("a", ("x",), {"x": range(6)}), make_member("b", ("x",), {}), make_member("c", ("x",), {}))
    row = health(lived(make_record(5, members), make_observation(10, make_topic("x", 6))))
    assert (row.verdict, row.drifted_count) == ("drifted", 4)
    assert (row.imbalance, row.imbalance_optimal) == (2.0, 0.0)


def test_a_group_without_assignments_has_no_imbalance() -> None:
    row = health(lived(make_record(5, generation=2), make_observation(10, state="Empty")))
    assert (row.imbalance, row.imbalance_optimal, row.members, row.assigned_partitions) == (None, None, 0, 0)


def test_rows_of_group_health_are_written_on_change_and_at_the_heartbeat() -> None:
    life = lived(make_record(5, even("x", 2, "a", "b")))
    for position in (10, 20, 30, 605, 609, 610, 620):
        life.take(make_observation(position, make_topic("x", 2)))
    assert [row.round for row in life.rows.group_health] == [10, 610]
    life.take(make_observation(630, make_topic("x", 2), state="PreparingRebalance"))
    assert (health(life).round, health(life).state) == (630, "PreparingRebalance")


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_a_share_or_streams_group_that_no_round_could_see_is_not_judged(kind: str) -> None:
    seen = make_observation(10, make_topic("x", 1), group_type=kind)
    assert health(lived(make_commit(5, 1, topic="x"), seen)).verdict == "pending"
    row = health(lived(msgspec.structs.replace(seen, seen=Seen("admin"))))
    assert row.verdict == "not_applicable"
    assert kind in str(row.verdict_reason)


def test_a_consumer_group_of_which_no_target_was_read_is_pending() -> None:
    row = health(lived(make_commit(5, 1, topic="x"), make_observation(10, make_topic("x", 1), group_type="consumer")))
    assert row.verdict == "pending"
    row = health(lived(*read([metadata("a"), epoch(1)], 3), make_observation(10, group_type=None, state=None)))
    assert (row.verdict, row.state) == ("pending", "Assigning")


# The end of a group.


def test_a_deleted_group_gets_closing_rows_and_leaves_no_state() -> None:
    life = lived(
        make_record(5, even("x", 2, "a", "b")),
        make_commit(6, 10, topic="x"),
        make_observation(10, make_topic("x", 2)),
        make_record(11, generation=2),
        make_commit(12, None, topic="x"),
        make_tombstone(13),
    )
    life.take(make_observation(20, gone="deleted", state=None))
    assert life.state is None
    row = health(life)
    assert (row.ended, row.state, row.verdict, row.verdict_reason) == (
        True,
        "Deleted",
        "not_applicable",
        "the group is gone",
    )
    assert [(row.partition, row.ended) for row in life.rows.lag if row.round == 20] == [(0, True), (1, True)]
    assert all(m.ended for m in {row.member_id: row for row in life.rows.members}.values())


def test_a_group_outside_the_filters_gets_closing_rows_too() -> None:
    life = lived(
        make_commit(6, 10, topic="x"), make_observation(10, make_topic("x", 1)), make_observation(20, gone="filtered")
    )
    assert (health(life).ended, health(life).state) == (True, "Filtered")
    assert life.state is None


def test_a_gone_group_that_nobody_knew_gets_no_rows() -> None:
    life = lived(make_observation(20, gone="deleted"))
    assert (life.state, bool(life.rows)) == (None, False)


def test_a_decision_of_a_group_that_ends_after_the_very_first_round_gets_its_verdict_at_the_second() -> None:
    topic = make_topic("x", 2)
    life = lived(make_record(5, even("x", 2, "a")), make_observation(10, topic, elapsed=0))
    life.take(make_record(13, even("x", 2, "a", "b"), generation=2), make_tombstone(15))
    life.take(make_observation(20, topic, elapsed=10_000))
    assert [(row.decision, row.verdict) for row in life.rows.drift] == [(5, "identical"), (13, "identical")]


def test_tombstones_that_trail_behind_leave_no_state_and_no_rows() -> None:
    life = lived(make_record(5, even("x", 2, "a")), make_commit(6, 10, topic="x"), make_observation(10, gone="deleted"))
    rows = life.take(
        make_commit(12, None, topic="x"), make_commit(13, None, topic="x", partition=1), make_tombstone(14)
    )
    assert (life.state, bool(rows)) == (None, False)
    rows = life.take(*read([*gone("a"), (other_key(3, GROUP), None)], 20))
    assert (life.state, bool(rows)) == (None, False)


def test_a_group_that_ended_before_any_round_leaves_no_state_and_open_members() -> None:
    life = lived(make_record(5, even("x", 2, "a", "b")), make_commits(6, 10, 20, None, topic="x"), make_tombstone(9))
    assert life.state is None
    assert [(row.member_id, row.ended) for row in life.rows.members[2:]] == [("a", True), ("b", True)]


def test_a_consumer_group_that_ended_before_any_round_leaves_no_state() -> None:
    log = [metadata("a"), epoch(1), target("a", 0), stands(1), *gone("a"), epoch(2), (other_key(3, GROUP), None)]
    life = lived(*read(log, 3))
    assert life.state is None


def test_a_group_with_a_committed_offset_is_kept_until_a_round_tells_of_it() -> None:
    life = lived(make_commit(6, 10, topic="x"))
    assert life.state is not None
    life.take(make_observation(10, make_topic("x", 1)))
    assert life.rows.lag[-1].commits == 1


def test_a_group_that_reappears_begins_anew() -> None:
    life = lived(
        make_record(5, even("x", 2, "a")),
        make_commit(6, 10, topic="x"),
        make_observation(10, make_topic("x", 2), gone="deleted"),
    )
    life.take(make_record(30, even("x", 2, "b")), make_observation(40, make_topic("x", 2)))
    row = life.rows.rebalance_churn[-1]
    assert (row.incarnation, row.joined, row.left, row.previous_generation) == (30, ("b",), (), None)
    assert (health(life).ended, health(life).verdict) == (False, "identical")
    assert [(row.partition, row.committed_offset) for row in life.rows.lag[-2:]] == [(0, None), (1, None)]


def test_a_group_deleted_and_made_again_between_two_rounds_is_one_group_with_two_incarnations() -> None:
    life = lived(
        make_record(5, even("x", 2, "a")), make_commit(6, 10, topic="x"), make_observation(10, make_topic("x", 2))
    )
    life.take(
        make_commit(11, None, topic="x"),
        make_tombstone(12),
        make_record(13, generation=0, protocol_type=""),
        make_record(14, even("x", 2, "b")),
        make_observation(20, make_topic("x", 2)),
    )
    assert [(row.kind, row.incarnation) for row in life.rows.rebalance_churn] == [
        ("rebalance", 5),
        ("created", 13),
        ("rebalance", 13),
    ]
    assert (health(life).incarnation, health(life).verdict) == (13, "identical")
    assert life.rows.lag[-2].offset_deleted


def test_an_unlisted_group_that_still_has_offsets_is_closed_all_the_same() -> None:
    life = lived(
        make_commit(6, 10, topic="x"), make_observation(10, make_topic("x", 1)), make_observation(20, gone="deleted")
    )
    closing = life.rows.lag[-1]
    assert (closing.ended, closing.committed_offset) == (True, 10)
    assert closing.subscribed  # its subscription is not known


def test_observations_at_one_position_are_taken_by_their_number() -> None:
    observations: list[GroupObservation] = [
        make_observation(10, make_topic("x", 1, end=end), round=number) for number, end in ((2, 90), (1, 80))
    ]
    life = lived(make_commit(5, 1, topic="x"), *observations)
    assert [(row.round, row.high_watermark) for row in life.rows.lag] == [(1, 80), (2, 90)]


def test_the_state_of_a_steady_group_does_not_grow() -> None:
    life = lived(make_record(5, even("x", 2, "a", "b")))
    sizes = []
    for position in range(10, 2010, 10):
        life.take(
            make_commit(position, position, topic="x"),
            make_observation(position + 5, make_topic("x", 2, end=position + 5)),
        )
        assert life.state is not None
        sizes.append(len(encode_state(life.state)[1]))
    assert sizes[-1] <= sizes[70] + 16  # The first rates come after ten minutes.
