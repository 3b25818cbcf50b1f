"""What a rebalance costs: the time without an owner, between bounds that records, commits and rounds prove."""

from __future__ import annotations

import msgspec
import pytest

from streaming.records import GroupInput
from tests.groups.build import (
    SECOND,
    START,
    Life,
    churn_of,
    even,
    make_commit,
    make_commits,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)

PENDING = "handover_pending"


def committed(record: int) -> list[GroupInput]:
    return [make_commits(record, 10, topic="x", partition=p) for p in (0, 1)]


def first_owner(record: int = 5) -> GroupInput:
    return make_record(record, even("x", 2, "a"))


def two_owners(record: int, generation: int = 2) -> GroupInput:
    return make_record(record, even("x", 2, "a", "b"), generation=generation, state_time=START + record * SECOND - 250)


def test_an_eager_rebalance_costs_all_partitions_from_the_join_to_the_sync_at_least() -> None:
    rows = churn_of(first_owner(), *committed(8), two_owners(20))
    assert (rows[1].unassigned_partition_seconds_min, rows[1].unassigned_partition_seconds_max) == (0.5, None)


def test_the_cost_is_bounded_once_every_partition_has_committed_again() -> None:
    life = Life.after(
        first_owner(), *committed(8), two_owners(20), make_commits(23, 11, topic="x", partition=0), make_observation(24)
    )
    # What arrived meanwhile: the round shows no topic.
    assert [(row.revision, row.records_delayed_reason) for row in life.rows.rebalance_churn[1:]] == [
        (1, "no_round"),
        (2, "high_watermark_unknown"),
    ]
    life.take(make_commits(30, 11, 12, topic="x", partition=1), make_observation(40))
    first, second = life.rows.rebalance_churn[2:]
    # Partition 0 committed at 8 and 23, partition 1 at 8 and 30.
    assert second == msgspec.structs.replace(first, revision=3, unassigned_partition_seconds_max=37.0)


def test_a_commit_with_a_time_before_the_decision_was_made_after_it_all_the_same() -> None:
    again = make_commit(30, 11, topic="x", partition=1, time=START + 8 * SECOND)
    rows = churn_of(
        first_owner(), *committed(8), two_owners(20), make_commits(23, 11, topic="x"), again, make_observation(40)
    )
    # Partition 0 committed at 8 and 23; the decision is at 20.
    assert rows[-1].unassigned_partition_seconds_max == 15.0 + 12.0


def test_the_next_decision_ends_the_waiting_when_its_members_had_joined() -> None:
    rows = churn_of(
        first_owner(), *committed(8), two_owners(20), two_owners(25, 3), *committed(30), make_observation(40)
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (20, 2), (25, 1), (25, 2), (20, 3)]
    # Both stopped at 8 at the earliest and began before 24.75, or never; the next pause begins after 20.
    assert [row.unassigned_partition_seconds_max for row in rows[1:]] == [None, 33.5, None, 10.0 * 2, 33.5]


def test_a_group_that_became_empty_ends_the_waiting() -> None:
    rows = churn_of(
        first_owner(),
        *committed(8),
        two_owners(20),
        make_record(25, generation=3),
        *committed(30),
        make_observation(40),
    )
    assert [(row.decision, row.revision, row.unassigned_partition_seconds_max) for row in rows[1:]] == [
        (20, 1, None),
        (20, 2, 2 * 16.98),
        (25, 1, None),
        (20, 3, 2 * 16.98),
    ]


def test_the_cost_is_told_though_the_group_ends_before_the_next_round() -> None:
    rows = churn_of(first_owner(), *committed(8), two_owners(20), *committed(23), make_tombstone(25))
    assert rows[-1].revision == 2


def test_without_a_commit_before_the_bound_begins_at_the_decision_before() -> None:
    rows = churn_of(first_owner(), two_owners(20), *committed(23), make_observation(30))
    assert (rows[-1].unassigned_partition_seconds_min, rows[-1].unassigned_partition_seconds_max) == (0.5, 36.0)


def test_one_commit_of_an_eager_member_shows_that_it_owns_everything_it_was_given() -> None:
    before = make_record(5, even("x", 4, "a", "b"))  # a: 0 and 1, b: 2 and 3
    rows = churn_of(
        before,
        make_commits(8, 10, topic="x", partition=0),
        make_commits(9, 10, topic="x", partition=3),
        make_record(20, even("x", 4, "b"), generation=2),
        make_commits(26, 11, topic="x", partition=1),
        make_observation(30),
    )
    assert rows[-1].unassigned_partition_seconds_max == 2 * (26 - 8) + 2 * (26 - 9)


def test_a_cooperative_rebalance_costs_only_what_moved() -> None:
    rows = churn_of(
        make_cooperative(5, 1, a=(0, 1)),
        *committed(8),
        make_cooperative(20, 2, {"a": (0, 1)}, a=(0,), b=()),
        make_cooperative(22, 3, {"a": (0,)}, a=(0,), b=(1,)),
        make_commits(24, 11, topic="x", partition=0),
        make_commits(25, 11, topic="x", partition=1),
        make_observation(30),
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (22, 1), (22, 2)]
    assert (rows[1].unassigned_partition_seconds_min, rows[1].unassigned_partition_seconds_max) == (0.0, 0.0)
    # a was told to give partition 1 up at 20.
    assert (rows[3].unassigned_partition_seconds_min, rows[3].unassigned_partition_seconds_max) == (0.02, 5.0)


def test_a_cooperative_rebalance_that_moves_nothing_costs_nothing() -> None:
    rows = churn_of(make_cooperative(5, 1, a=(0, 1)), make_cooperative(9, 2, {"a": (0, 1)}, a=(0, 1), b=()))
    assert (rows[1].unassigned_partition_seconds_min, rows[1].unassigned_partition_seconds_max) == (0.0, 0.0)


def test_a_cooperative_member_that_reports_less_than_it_was_given_never_had_it() -> None:
    rows = churn_of(
        make_cooperative(5, 1, a=(0, 1)),
        make_cooperative(9, 2, {"a": (0,)}, a=(0, 1)),
        make_commits(11, 11, topic="x", partition=1),
        make_observation(12),
    )
    assert (rows[-1].unassigned_partition_seconds_min, rows[-1].unassigned_partition_seconds_max) == (0.02, 6.0)


def rounds(*states: tuple[int, str]) -> list[GroupInput]:
    """Rounds at these log offsets and times, which close half a second later."""
    return [make_observation(at, state=state) for at, state in states]


STABLE, PREPARING, COMPLETING = "Stable", "PreparingRebalance", "CompletingRebalance"


def bounds_with(*between: GroupInput, members: GroupInput | None = None) -> tuple[float | None, ...]:
    """Bounds of the rebalance at 60 after one at 5, of two partitions, with a commit of each member at 61."""
    record = members or two_owners(60)
    after = [make_commits(61, 11, topic="x"), make_commits(62, 11, topic="x", partition=1)]
    row = churn_of(first_owner(), *committed(8), *between, record, *after, make_observation(66))[-1]
    assert row.decision == 60
    since = None if row.preparing_since is None else (row.preparing_since - START) / SECOND
    return row.unassigned_partition_seconds_min, row.unassigned_partition_seconds_max, since


def test_a_later_round_shows_that_a_group_was_still_stable() -> None:
    # From the opening of the round at 50 to the closing of that at 66. The round at 55 may have seen the next decision.
    assert bounds_with(*rounds((50, STABLE), (55, STABLE))) == (0.5, 2 * 16.5, None)


def test_the_newest_round_before_a_decision_may_have_seen_what_comes_after_it() -> None:
    # Partition 0: 8 to 61, partition 1: 8 to 62.
    assert bounds_with(*rounds((55, STABLE))) == (0.5, 53.0 + 54.0, None)


def test_time_in_which_members_may_not_have_joined_yet_is_in_the_upper_bound_only() -> None:
    seen = rounds((40, STABLE), (45, PREPARING), (50, PREPARING), (55, PREPARING))
    least, most, since = bounds_with(*seen)
    # From 40 to 66.5 by the rounds: a comes again, so it is known to have been there at 40.
    assert (least, most, since) == (0.5, 2 * 26.5, 45.0)


def test_nobody_owns_anything_from_the_first_round_that_saw_the_members_wait_for_the_leader() -> None:
    seen = rounds((20, STABLE), (30, COMPLETING), (40, PREPARING), (55, COMPLETING))
    least, most, since = bounds_with(*seen)
    # From the closing of the round at 30 to the opening of that at 55.
    assert (least, most, since) == (2 * 24.5, 2 * 46.5, None)


def test_a_static_member_or_one_that_is_gone_may_have_been_gone_while_the_group_was_stable() -> None:
    seen = rounds((50, STABLE), (55, STABLE))
    gone = make_record(60, even("x", 2, "b", "c"), generation=2)
    assert bounds_with(*seen, members=gone)[1] == 53.0 + 54.0
    one = make_member("a", ("x",), {"x": (0, 1)}, group_instance_id="i")
    rows = churn_of(
        make_record(5, [one]), *committed(8), *seen, make_record(60, [one], generation=2), *committed(61),
        make_observation(66),
    )  # fmt: skip
    assert rows[-1].unassigned_partition_seconds_max == 2 * 53.0


def test_rounds_prove_nothing_while_the_log_is_held_back_or_a_clock_is_wrong() -> None:
    held = [make_observation(at, state=STABLE, held_since=START) for at in (50, 55)]
    assert bounds_with(*held)[1] == 53.0 + 54.0
    far = [make_observation(at, state=STABLE, time=START + at * SECOND + 10**9, elapsed=at * SECOND) for at in (50, 55)]
    near = make_observation(45, state=STABLE, elapsed=45 * SECOND)
    assert bounds_with(near, *far)[1] == 53.0 + 54.0


@pytest.mark.parametrize("got", [(), (0,)])
def test_partitions_that_eager_members_give_up_and_nobody_gets_have_no_upper_bounds(got: tuple[int, ...]) -> None:
    members = [make_member("a", ("x",), {"x": got} if got else {}), make_member("b", ("x",))]
    inputs = [first_owner(), *committed(8), make_observation(10, make_topic("x", 2, end=500))]
    inputs += [make_record(20, members, generation=2), *committed(23)]
    row = churn_of(*inputs, make_observation(30, make_topic("x", 2, end=600)))[-1]
    assert (row.decision, row.records_delayed_reason) == (20, PENDING)
    assert (row.unassigned_partition_seconds_max, row.records_delayed_min, row.records_delayed_max) == (None,) * 3


@pytest.mark.parametrize(
    ("topics", "count", "reason"),
    [(("x",), 1, "no_round"), (("x", "y"), 0, "no_round"), (("x", "y"), None, "no_round"), (("x", "y"), 1, PENDING)],
)
def test_partitions_that_are_gone_or_that_nobody_subscribes_to_any_more_leave_no_bound_open(
    topics: tuple[str, ...], count: int | None, reason: str
) -> None:
    before = make_record(5, [make_member("a", ("x", "y"), {"x": (0, 1), "y": (0,)})])
    after = make_record(20, even("x", 2, "a", "b", topics=topics), generation=2)
    seen = make_observation(10, make_topic("x", 2, end=500), make_topic("y", count))
    assert churn_of(before, *committed(8), seen, after)[-1].records_delayed_reason == reason


def test_an_unknown_strategy_has_no_upper_bound() -> None:
    record = make_record(20, even("x", 2, "a", "b"), generation=2, protocol="house-blend")
    rows = churn_of(first_owner(), *committed(8), record, *committed(23), make_observation(30))
    # Partition 1 moved from a to b: it certainly had no owner between join and sync (20 ms).
    assert [(row.revision, row.unassigned_partition_seconds_min) for row in rows[1:]] == [(1, 0.02)]


def test_a_static_member_s_return_does_not_end_the_waiting() -> None:
    def record(at: int, member_id: str, generation: int) -> GroupInput:
        member = make_member(member_id, ("x",), {"x": (0, 1)}, group_instance_id="i1")
        return make_record(at, (member,), generation=generation)

    rows = churn_of(
        record(5, "m", 1), *committed(8), record(20, "m", 2), record(22, "m2", 2), *committed(25), make_observation(30)
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (22, 1), (20, 2)]


def test_a_group_that_ended_before_any_round_gets_no_more_revisions() -> None:
    life = Life.after(
        first_owner(), *committed(8), two_owners(20), *committed(23), two_owners(30, 3), make_tombstone(40)
    )
    revisions = [(row.decision, row.revision) for row in life.rows.rebalance_churn]
    life.take(make_observation(50))
    assert [(row.decision, row.revision) for row in life.rows.rebalance_churn] == revisions


def test_times_far_in_the_future_are_bounded_by_what_a_state_can_hold() -> None:
    life = Life.after(first_owner(), *committed(8))
    for generation in range(2, 6):
        late = make_record(20 * generation, even("x", 2, "a", "b"), generation=generation, time=2**63 - 1)
        life.take(msgspec.structs.replace(late, state_time=0))
        for partition in (0, 1):
            at = 20 * generation + 1 + partition
            life.take(make_commit(at, 10, topic="x", partition=partition, time=2**63 - 1))
    life.take(make_observation(200))
    assert max(row.unassigned_partition_seconds_min or 0 for row in life.rows.rebalance_churn) == 2**53 / 1_000
    assert max(row.unassigned_partition_seconds_max or 0 for row in life.rows.rebalance_churn) == 2**53 / 1_000
