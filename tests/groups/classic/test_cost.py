"""What a rebalance costs: the time without an owner, between bounds that commits give.

Members of eager strategies give up everything before they join.
"""

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
    life = Life()
    life.take(
        first_owner(), *committed(8), two_owners(20), make_commits(23, 11, topic="x", partition=0), make_observation(24)
    )
    # (What arrived meanwhile: the round shows no topic.)
    assert [(row.revision, row.records_delayed_reason) for row in life.rows.rebalance_churn[1:]] == [
        (1, "no_round"),
        (2, "high_watermark_unknown"),
    ]
    life.take(make_commits(30, 11, 12, topic="x", partition=1), make_observation(40))
    first, second = life.rows.rebalance_churn[2:]
    # Partition 0 committed at 8 and 23, partition 1 at 8 and 30.
    assert second == msgspec.structs.replace(first, revision=3, unassigned_partition_seconds_max=37.0)


def test_a_commit_at_the_time_of_the_one_before_it_adds_nothing_to_the_bound() -> None:
    again = make_commit(30, 11, topic="x", partition=1, time=START + 8 * SECOND)
    rows = churn_of(
        first_owner(), *committed(8), two_owners(20), make_commits(23, 11, topic="x"), again, make_observation(40)
    )
    # Partition 0 committed at 8 and 23, partition 1 twice at 8.
    assert rows[-1].unassigned_partition_seconds_max == 15.0


def test_the_next_decision_ends_the_waiting_and_leaves_the_bound_open() -> None:
    rows = churn_of(
        first_owner(), *committed(8), two_owners(20), two_owners(25, 3), *committed(30), make_observation(40)
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (25, 1), (25, 2), (20, 2)]
    assert [row.unassigned_partition_seconds_max for row in rows[1:]] == [None, None, 22.0 * 2, None]


def test_a_group_that_became_empty_ends_the_waiting() -> None:
    rows = churn_of(
        first_owner(),
        *committed(8),
        two_owners(20),
        make_record(25, generation=3),
        *committed(30),
        make_observation(40),
    )
    assert [(row.revision, row.unassigned_partition_seconds_max) for row in rows] == [(1, None)] * 3 + [(2, None)]


def test_the_cost_is_told_though_the_group_ends_before_the_next_round() -> None:
    rows = churn_of(first_owner(), *committed(8), two_owners(20), *committed(23), make_tombstone(25))
    assert rows[-1].revision == 2


def test_without_a_commit_before_there_is_no_upper_bound() -> None:
    rows = churn_of(first_owner(), two_owners(20), *committed(23), make_observation(30))
    assert (rows[1].unassigned_partition_seconds_min, len(rows)) == (0.5, 2)


def test_a_cooperative_rebalance_costs_only_what_moved() -> None:
    rows = churn_of(
        make_cooperative(5, 1, a=(0, 1)),
        *committed(8),
        make_cooperative(20, 2, a=(0,), b=()),
        make_cooperative(22, 3, a=(0,), b=(1,)),
        make_commits(25, 11, topic="x", partition=1),
        make_observation(30),
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (22, 1), (22, 2)]
    assert (rows[3].unassigned_partition_seconds_min, rows[3].unassigned_partition_seconds_max) == (0.02, 17.0)


def test_a_cooperative_rebalance_that_moves_nothing_costs_nothing() -> None:
    rows = churn_of(make_cooperative(5, 1, a=(0, 1)), make_cooperative(9, 2, a=(0, 1), b=()))
    assert (rows[1].unassigned_partition_seconds_min, rows[1].unassigned_partition_seconds_max) == (0.0, 0.0)


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
    life = Life()
    life.take(first_owner(), *committed(8), two_owners(20), *committed(23), two_owners(30, 3), make_tombstone(40))
    revisions = [(row.decision, row.revision) for row in life.rows.rebalance_churn]
    life.take(make_observation(50))
    assert [(row.decision, row.revision) for row in life.rows.rebalance_churn] == revisions


def test_times_far_in_the_future_are_bounded_by_what_a_state_can_hold() -> None:
    life = Life()
    life.take(first_owner(), *committed(8))
    for generation in range(2, 6):
        late = make_record(20 * generation, even("x", 2, "a", "b"), generation=generation, time=2**63 - 1)
        life.take(msgspec.structs.replace(late, state_time=0))
        for partition in (0, 1):
            at = 20 * generation + 1 + partition
            life.take(make_commit(at, 10, topic="x", partition=partition, time=2**63 - 1))
    life.take(make_observation(200))
    assert max(row.unassigned_partition_seconds_min or 0 for row in life.rows.rebalance_churn) == 2 * 2**53 / 1_000
