"""A start with an old log: rows for decisions before the first round, and for compacted ranges."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import GroupConfig, Incarnations
from streaming.records import CONSUMER, Compacted, GroupInput, Removed, in_order
from tests.groups.build import (
    GROUP,
    MINUTE,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)

HOUR = 60 * MINUTE


def owns(*counts: int) -> list[tuple[tuple[str, tuple[int, ...]], ...]]:
    return [(("x", tuple(range(count))),) for count in counts]


def first_half() -> GroupInput:
    """`a` has given up two of six partitions, which `b` gets in the next generation."""
    owned = owns(6)
    members = (
        make_member("a", ("x",), {"x": range(4)}, owned=owned[0], generation=6),
        make_member("b", ("x",), {}),
    )
    return make_record(5, members, generation=7, protocol="cooperative-sticky")


ALL_ON_A = (make_member("a", ("x",), {"x": range(6)}), make_member("b", ("x",), {}))


@pytest.mark.parametrize(
    ("decision", "count", "after", "verdict"),
    [
        (first_half(), 8, 2 * MINUTE, "unverified"),
        (first_half(), 8, 5 * HOUR, "unverified"),
        (make_record(5, even("x", 2, "a", "b")), 2, 5 * HOUR, "identical"),
        (make_record(5, ALL_ON_A, generation=7), 6, 5 * HOUR, "drifted"),
    ],
    ids=["the topic has grown", "it has grown in hours", "it fits", "it broke its strategy"],
)
def test_an_old_decision_is_judged_by_what_its_leader_may_have_known(
    decision: GroupInput, count: int, after: int, verdict: str
) -> None:
    life = Life.after(decision, make_observation(10, make_topic("x", count), time=START + after, closed=START + after))
    assert [row.verdict for row in life.rows.drift] == [verdict]


def test_a_round_inside_a_compacted_stretch_is_not_judged_and_the_first_behind_it_is() -> None:
    life = Life.after(make_commit(10, 50, topic="x"), make_observation(20, make_topic("x", 1, end=60)))
    # The commits of 30 to 90 were compacted in favour of the one at 95.
    life.take(
        Compacted(30, 96),
        make_observation(60, make_topic("x", 1, end=900)),
        make_observation(90, make_topic("x", 1, end=950)),
    )
    life.take(make_commit(95, 990, topic="x"), make_observation(100, make_topic("x", 1, end=1_010)))
    assert [(row.round, row.committed_offset, row.lag) for row in life.rows.lag] == [(20, 50, 10), (100, 990, 20)]
    assert [row.round for row in life.rows.group_health] == [20, 100]


def test_a_round_before_the_first_missing_offset_is_judged() -> None:
    life = Life.after(
        make_commit(10, 50, topic="x"), Compacted(30, 96), make_observation(30, make_topic("x", 1, end=60))
    )
    assert [(row.round, row.lag) for row in life.rows.lag] == [(30, 10)]


def test_a_long_pause_is_not_learned_from_commits_that_compaction_has_taken_out() -> None:
    life = Life()
    for at in range(10, 60, 10):
        life.take(make_commit(at, at, topic="x"), make_observation(at + 5, make_topic("x", 1, end=at + 20)))
    known = life.state.partitions["x"][0].rhythm
    life.take(Compacted(60, 5_001), make_commit(5_000, 90, topic="x"), make_observation(5_010, make_topic("x", 1)))
    after = life.state.partitions["x"][0].rhythm
    assert (
        (after.pauses, after.counted)
        == (known.pauses, known.counted)
        == ([10_000, 20_000, 10_000, 30_000, 10_000, 40_000], 4)
    )


def test_of_a_generation_in_a_compacted_stretch_numbers_are_told_and_neither_joins_nor_moves() -> None:
    life = Life.after(
        make_record(5, even("x", 4, "a", "b"), generation=3),
        make_observation(10, make_topic("x", 4)),
        Compacted(20, 51),
        make_record(50, even("x", 4, "b", "c"), generation=6),
        make_observation(60, make_topic("x", 4)),
    )
    row = life.rows.rebalance_churn[-1]
    assert (row.previous_generation, row.generations_skipped) == (3, 2)
    assert (row.joined, row.left, row.partitions_moved, row.partitions_moved_optimal) == (None, (), None, None)
    assert (row.unassigned_partition_seconds_min, row.unassigned_partition_seconds_max) == (None, None)


def test_the_next_generation_in_a_compacted_stretch_may_be_a_static_member_s_return() -> None:
    life = Life()
    statics = [msgspec.structs.replace(m, group_instance_id=m.member_id) for m in even("x", 4, "a", "b")]
    life.take(make_record(5, statics, generation=3), make_observation(10, make_topic("x", 4)))
    # The record has a new subscription beside the previous assignment: no leader decided that.
    changed = msgspec.structs.replace(statics[0], member_id="a2", topics=("y",))
    life.take(Compacted(20, 51), make_record(50, (changed, statics[1]), generation=4))
    life.take(make_observation(60, make_topic("x", 4), make_topic("y", 1)))
    assert [row.verdict for row in life.rows.drift] == ["identical", "unverified"]
    assert [row.generation for row in life.rows.rebalance_churn] == [3]
    assert {row.member_id for row in life.rows.members if row.decision == 50 and not row.ended} == {"a2", "b"}


def test_moves_of_the_second_half_of_a_cooperative_rebalance_are_not_known_where_the_first_was_not_read() -> None:
    life = Life.after(Compacted(0, 6), first_half())
    members = (
        make_member("a", ("x",), {"x": range(4)}, owned=owns(4)[0], generation=7),
        make_member("b", ("x",), {"x": (4, 5)}, generation=7),
    )
    life.take(make_record(9, members, generation=8, protocol="cooperative-sticky"))
    row = life.rows.rebalance_churn[-1]
    assert (row.previous_generation, row.partitions_moved, row.partitions_moved_optimal) == (7, None, None)
    assert (row.joined, row.unassigned_partition_seconds_max) == ((), None)


def test_a_group_that_ends_in_a_compacted_stretch_is_closed() -> None:
    life = Life.after(
        make_commit(10, 50, topic="x"),
        make_observation(20, make_topic("x", 1, end=60)),
        Compacted(30, 96),
        make_observation(60, gone="deleted", state=None),
        make_observation(80, make_topic("x", 1)),
    )
    assert [(row.round, row.ended) for row in life.rows.lag] == [(20, False), (60, True)]
    # Another group with this name begins in the range.
    life.take(make_commit(95, 3, topic="x"), make_observation(100, make_topic("x", 1, end=5)))
    assert [(row.round, row.committed_offset) for row in life.rows.lag[2:]] == [(100, 3)]


def test_a_stretch_leaves_nothing_behind_in_the_state() -> None:
    life = Life.after(Compacted(0, 6), make_commit(5, 1, topic="x"), make_observation(6, make_topic("x", 1)))
    assert life.state.compacted_until == -1
    life.take(make_tombstone(8), make_commit(7, None, topic="x"), make_observation(9, gone="deleted", state=None))
    assert life.state is None


def test_a_group_that_ended_in_a_stretch_leaves_no_state_once_its_last_record_there_is_taken() -> None:
    life = Life.after(Compacted(0, 7), make_tombstone(5))
    assert life.state is not None, "its record at 6 is still to come"
    life.take(make_commit(6, None))
    assert life.state is None
    for last in (make_tombstone(6), make_commit(6, None), Removed(6, START, CONSUMER, 0, 3)):
        life.take(Compacted(0, 7), make_commit(5, None), last)
        assert life.state is None, last


def test_what_trails_behind_a_group_that_ended_in_a_stretch_is_forgotten_without_a_trace() -> None:
    cut, whole = Life(), Life()
    tail = make_commit(6, None, topic="x")
    # Another group with that name, before any round or membership record.
    commits = make_commit(10, 1, topic="x"), make_commit(12, 2, topic="x")
    cut.take(Compacted(0, 7), tail)
    assert cut.state is None
    cut.take(*commits, make_observation(20, make_topic("x", 1)))
    whole.take(Compacted(0, 7), tail, *commits, make_observation(20, make_topic("x", 1)))
    assert cut.state == whole.state


def test_a_stretch_begins_before_the_record_at_its_first_offset_in_whatever_order_they_come() -> None:
    # The first offset is that of a batch from which records are missing; its first record may exist.
    stretch, record = Compacted(5, 6), make_record(5, even("x", 2, "a", "b"))
    assert in_order([record, stretch]) == in_order([stretch, record]) == [stretch, record]


@pytest.mark.parametrize(("decision", "incarnation"), [(5, 5), (30, 10), (60, 10), (61, 61), (95, 80)])
def test_a_decision_that_the_tables_know_keeps_its_incarnation_and_any_other_begins_one(
    decision: int, incarnation: int
) -> None:
    known = Incarnations({GROUP: [(10, 60), (80, 95)], "other": [(0, 99)]})
    life = Life(GroupConfig("c", incarnations=known))
    life.take(
        Compacted(1, decision + 1),
        make_record(decision, even("x", 2, "a", "b"), generation=7),
        make_observation(100, make_topic("x", 2)),
    )
    rows = [*life.rows.rebalance_churn, *life.rows.members, *life.rows.drift, *life.rows.group_health]
    assert {type(row).__name__ for row in rows} == {"ChurnRow", "MemberRow", "DriftRow", "GroupHealthRow"}
    assert {row.incarnation for row in rows} == {incarnation}
