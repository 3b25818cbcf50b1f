"""Rebalances: one row per decision, with the changes."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import encode_state
from streaming.groups.rows import ChurnRow, ReplacedMember
from streaming.records import GroupInput, Member
from tests.groups.build import (
    GROUP,
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    even,
    make_commits,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)


def churn(*inputs: GroupInput) -> list[ChurnRow]:
    life = Life()
    life.take(*inputs)
    return life.rows.rebalance_churn


def cooperative(record: int, generation: int, **partitions: tuple[int, ...]) -> GroupInput:
    members = [make_member(name, ("x",), {"x": owned} if owned else {}) for name, owned in partitions.items()]
    return make_record(record, members, generation=generation, protocol="cooperative-sticky")


def test_a_group_made_by_a_join_that_wrote_nothing_else_is_created() -> None:
    (row,) = churn(make_record(3, generation=0, protocol_type=""))
    assert (row.kind, row.generation, row.previous_generation, row.members) == ("created", 0, None, 0)
    assert (row.joined, row.left, row.partitions_moved, row.strategy, row.leader) == ((), (), 0, None, None)


def test_a_row_tells_the_decision() -> None:
    (row,) = churn(make_record(5, even("x", 3, "a", "b")))
    assert (row.cluster, row.group_id, row.log_partition, row.decision) == ("test", GROUP, LOG_PARTITION, 5)
    assert (row.record_time, row.join_completed_time) == (START + 5 * SECOND, START + 5 * SECOND - 20)
    assert (row.kind, row.revision, row.incarnation, row.generation) == ("rebalance", 1, 5, 1)
    assert (row.protocol_type, row.strategy, row.leader) == ("consumer", "range", "a")
    assert (row.members, row.partitions, row.joined, row.left) == (2, 3, ("a", "b"), ())


def test_who_joined_and_who_left_is_told() -> None:
    rows = churn(make_record(5, even("x", 3, "a", "b")), make_record(9, even("x", 3, "b", "c"), generation=2))
    assert (rows[1].joined, rows[1].left) == (("c",), ("a",))
    assert (rows[1].previous_generation, rows[1].generations_skipped, rows[1].follows) == (1, 0, None)


def test_moves_are_partitions_that_changed_hands() -> None:
    rows = churn(
        make_record(5, (make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), {"x": (2,)}))),
        make_record(
            9,
            (
                make_member("a", ("x",), {"x": (0,)}),
                make_member("b", ("x",), {"x": (1,)}),
                make_member("c", ("x",), {"x": (2,)}),
            ),
            generation=2,
        ),
    )
    # 1 moved from a to b, 2 from b to c; one move (to c) would have been enough.
    assert (rows[0].partitions_moved, rows[1].partitions_moved, rows[1].partitions_moved_optimal) == (0, 2, 1)


def test_a_group_without_members_became_empty() -> None:
    rows = churn(make_record(5, even("x", 3, "a", "b")), make_record(9, generation=2))
    assert (rows[1].kind, rows[1].left, rows[1].members, rows[1].partitions_moved) == ("became_empty", ("a", "b"), 0, 0)


def test_skipped_generations_are_counted() -> None:
    rows = churn(make_record(5, even("x", 3, "a"), generation=3), make_record(9, even("x", 3, "a"), generation=7))
    assert (rows[1].previous_generation, rows[1].generations_skipped) == (3, 3)


def test_a_lower_generation_begins_a_new_incarnation() -> None:
    rows = churn(make_record(5, even("x", 3, "a"), generation=8), make_record(9, even("x", 3, "b"), generation=1))
    assert (rows[1].kind, rows[1].incarnation, rows[1].previous_generation) == ("rebalance", 9, None)
    assert (rows[1].generations_skipped, rows[1].joined, rows[1].left) == (None, ("b",), ())


def test_the_same_generation_with_other_members_is_a_new_incarnation() -> None:
    rows = churn(make_record(5, even("x", 3, "a")), make_record(9, even("x", 3, "b")))
    assert (rows[1].kind, rows[1].incarnation) == ("rebalance", 9)


def test_a_group_deleted_and_made_again_is_a_new_incarnation() -> None:
    rows = churn(make_record(5, even("x", 3, "a")), make_tombstone(7), make_record(9, even("x", 3, "a"), generation=2))
    assert (rows[1].incarnation, rows[1].previous_generation, rows[1].partitions_moved, rows[1].left) == (
        9,
        None,
        None,
        (),
    )


def test_a_static_member_s_return_is_no_rebalance() -> None:
    def member(member_id: str) -> Member:
        return make_member(member_id, ("x",), {"x": (0,)}, group_instance_id="i1")

    rows = churn(make_record(5, (member("old"),)), make_record(9, (member("new"),)))
    row = rows[1]
    assert (row.kind, row.generation, row.incarnation, row.generations_skipped) == ("static_replacement", 1, 5, 0)
    assert row.replaced == (ReplacedMember("i1", "old", "new"),)
    assert (row.joined, row.left, row.partitions_moved) == ((), (), 0)


def test_a_static_member_that_returns_in_a_rebalance_neither_joined_nor_left() -> None:
    rows = churn(
        make_record(5, (make_member("old", ("x",), {"x": (0, 1)}, group_instance_id="i1"),)),
        make_record(
            9,
            (
                make_member("new", ("x",), {"x": (0,)}, group_instance_id="i1"),
                make_member("b", ("x",), {"x": (1,)}),
            ),
            generation=2,
        ),
    )
    assert (rows[1].kind, rows[1].joined, rows[1].left, rows[1].partitions_moved) == ("rebalance", ("b",), (), 1)
    assert rows[1].replaced == (ReplacedMember("i1", "old", "new"),)


def test_a_cooperative_rebalance_takes_two_generations_and_a_move_counts_once() -> None:
    rows = churn(
        cooperative(5, 1, a=(0, 1, 2)),
        cooperative(9, 2, a=(0, 1), b=()),
        cooperative(11, 3, a=(0, 1), b=(2,)),
    )
    assert [row.kind for row in rows] == ["rebalance"] * 3
    assert [row.partitions_pending_handover for row in rows] == [0, 1, 0]
    assert [row.partitions_moved for row in rows] == [0, 0, 1]
    assert [row.partitions_moved_optimal for row in rows] == [0, None, 1]
    assert [row.follows for row in rows] == [None, None, 9]


def test_a_partition_given_up_and_given_back_has_not_moved() -> None:
    rows = churn(cooperative(5, 1, a=(0, 1)), cooperative(9, 2, a=(0,), b=()), cooperative(11, 3, a=(0, 1)))
    assert [row.partitions_moved for row in rows] == [0, 0, 0]


def test_a_transfer_over_three_generations_is_one_move_from_first_to_last_owner() -> None:
    rows = churn(
        cooperative(5, 1, a=(0, 1)),
        cooperative(9, 2, a=(0,), b=()),
        cooperative(11, 3, a=(0,), b=(), c=()),
        cooperative(13, 4, a=(0,), b=(), c=(1,)),
    )
    assert [row.partitions_moved for row in rows] == [0, 0, 0, 1]
    assert [row.partitions_pending_handover for row in rows] == [0, 1, 1, 0]
    assert [row.follows for row in rows] == [None, None, 9, 11]


def test_a_topic_that_nobody_wants_any_more_is_not_in_transfer() -> None:
    rows = churn(
        make_record(5, (make_member("a", ("x", "y"), {"x": (0,), "y": (0,)}),), protocol="cooperative-sticky"),
        make_record(9, (make_member("a", ("x",), {"x": (0,)}),), generation=2, protocol="cooperative-sticky"),
    )
    assert rows[1].partitions_pending_handover == 0


def test_an_unknown_strategy_may_hand_over_in_two_steps() -> None:
    def streams(record: int, generation: int, a: tuple[int, ...], b: tuple[int, ...]) -> GroupInput:
        members = (make_member("a", ("x",), {"x": a}), make_member("b", ("x",), {"x": b} if b else {}))
        return make_record(record, members, generation=generation, protocol="stream")

    rows = churn(streams(5, 1, (0, 1), ()), streams(9, 2, (0,), ()), streams(11, 3, (0,), (1,)))
    assert [row.partitions_moved for row in rows] == [0, 0, 1]


def test_an_eager_strategy_that_leaves_a_partition_out_transfers_nothing() -> None:
    rows = churn(
        make_record(5, (make_member("a", ("x",), {"x": (0, 1)}),)),
        make_record(9, (make_member("a", ("x",), {"x": (0,)}),), generation=2),
    )
    assert rows[1].partitions_pending_handover == 0


def test_what_was_before_the_first_record_after_compaction_is_unknown() -> None:
    (row,) = churn(make_record(5, even("x", 3, "a", "b"), generation=41))
    assert (row.joined, row.partitions_moved, row.partitions_moved_optimal, row.previous_generation) == (
        None,
        None,
        None,
        None,
    )


def test_an_undecodable_assignment_leaves_moves_unknown() -> None:
    rows = churn(
        make_record(5, even("x", 3, "a")),
        make_record(9, (make_member("a", ("x",), None, undecodable="assignment: cut"),), generation=2),
    )
    assert (rows[1].partitions_moved, rows[1].partitions_moved_optimal, rows[1].partitions) == (None, None, 0)


def test_a_connect_group_has_churn_without_partitions() -> None:
    worker = make_member("w", None, assigned=None)
    (row,) = churn(make_record(5, (worker,), protocol_type="connect", protocol="sessioned"))
    assert (row.kind, row.members, row.partitions, row.partitions_moved) == ("rebalance", 1, 0, None)


@pytest.mark.parametrize("generation", [-(2**31), 2**31 - 1])
def test_odd_generations_fit_the_columns(generation: int) -> None:
    rows = churn(
        make_record(5, even("x", 3, "a"), generation=-(2**31)), make_record(9, even("x", 3, "a"), generation=generation)
    )
    assert rows[1].generations_skipped in {0, 2**31 - 1}


# Costs. Members of eager strategies give up everything before they join.


def committed(record: int) -> list[GroupInput]:
    return [make_commits(record, 10, topic="x", partition=p) for p in (0, 1)]


def first_owner(record: int = 5) -> GroupInput:
    return make_record(record, even("x", 2, "a"))


def two_owners(record: int, generation: int = 2) -> GroupInput:
    return make_record(record, even("x", 2, "a", "b"), generation=generation, state_time=START + record * SECOND - 250)


def test_an_eager_rebalance_costs_all_partitions_from_the_join_to_the_sync_at_least() -> None:
    rows = churn(first_owner(), *committed(8), two_owners(20))
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


def test_the_next_decision_ends_the_waiting_and_leaves_the_bound_open() -> None:
    rows = churn(first_owner(), *committed(8), two_owners(20), two_owners(25, 3), *committed(30), make_observation(40))
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (25, 1), (25, 2), (20, 2)]
    assert [row.unassigned_partition_seconds_max for row in rows[1:]] == [None, None, 22.0 * 2, None]


def test_a_group_that_became_empty_ends_the_waiting() -> None:
    rows = churn(
        first_owner(),
        *committed(8),
        two_owners(20),
        make_record(25, generation=3),
        *committed(30),
        make_observation(40),
    )
    assert [(row.revision, row.unassigned_partition_seconds_max) for row in rows] == [(1, None)] * 3 + [(2, None)]


def test_the_cost_is_told_though_the_group_ends_before_the_next_round() -> None:
    rows = churn(first_owner(), *committed(8), two_owners(20), *committed(23), make_tombstone(25))
    assert rows[-1].revision == 2


def test_without_a_commit_before_there_is_no_upper_bound() -> None:
    rows = churn(first_owner(), two_owners(20), *committed(23), make_observation(30))
    assert (rows[1].unassigned_partition_seconds_min, len(rows)) == (0.5, 2)


def test_a_cooperative_rebalance_costs_only_what_moved() -> None:
    rows = churn(
        cooperative(5, 1, a=(0, 1)),
        *committed(8),
        cooperative(20, 2, a=(0,), b=()),
        cooperative(22, 3, a=(0,), b=(1,)),
        make_commits(25, 11, topic="x", partition=1),
        make_observation(30),
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (22, 1), (22, 2)]
    assert (rows[3].unassigned_partition_seconds_min, rows[3].unassigned_partition_seconds_max) == (0.02, 17.0)


def test_a_cooperative_rebalance_that_moves_nothing_costs_nothing() -> None:
    rows = churn(cooperative(5, 1, a=(0, 1)), cooperative(9, 2, a=(0, 1), b=()))
    assert (rows[1].unassigned_partition_seconds_min, rows[1].unassigned_partition_seconds_max) == (0.0, 0.0)


def test_an_unknown_strategy_has_no_upper_bound() -> None:
    record = make_record(20, even("x", 2, "a", "b"), generation=2, protocol="house-blend")
    rows = churn(first_owner(), *committed(8), record, *committed(23), make_observation(30))
    # Partition 1 moved from a to b: it certainly had no owner between join and sync (20 ms).
    assert [(row.revision, row.unassigned_partition_seconds_min) for row in rows[1:]] == [(1, 0.02)]


def test_a_static_member_s_return_does_not_end_the_waiting() -> None:
    def record(at: int, member_id: str, generation: int) -> GroupInput:
        member = make_member(member_id, ("x",), {"x": (0, 1)}, group_instance_id="i1")
        return make_record(at, (member,), generation=generation)

    rows = churn(
        record(5, "m", 1), *committed(8), record(20, "m", 2), record(22, "m2", 2), *committed(25), make_observation(30)
    )
    assert [(row.decision, row.revision) for row in rows] == [(5, 1), (20, 1), (22, 1), (20, 2)]


# Members.


def members_of(life: Life) -> list[tuple[str, int, bool, int | None]]:
    return [(row.member_id, row.decision, row.ended, row.partition_count) for row in life.rows.members]


def test_every_member_of_a_decision_has_a_row() -> None:
    life = Life()
    life.take(make_record(5, (make_member("a", ("x", "y"), {"x": (0, 2)}, rack="r1", group_instance_id="i"),)))
    (row,) = life.rows.members
    assert (row.member_id, row.client_id, row.client_host, row.rack) == ("a", "consumer-1", "/127.0.0.1", "r1")
    assert (row.group_instance_id, row.leader, row.subscription) == ("i", True, ("x", "y"))
    assert (row.partition_count, [tuple(t.partitions) for t in row.partitions or ()]) == (2, [(0, 2)])
    assert (row.ended, row.incarnation, row.generation) == (False, 5, 1)


def test_a_member_has_its_timeouts_and_none_that_its_record_does_not_tell() -> None:
    life = Life()
    told = make_member("a", ("x",), {"x": (0,)}, session_timeout=10_000, rebalance_timeout=60_000)
    life.take(make_record(5, (told, make_member("b", ("x",), {}, session_timeout=9_000, rebalance_timeout=-1))))
    found = [(row.member_id, row.session_timeout_ms, row.rebalance_timeout_ms) for row in life.rows.members]
    assert found == [("a", 10_000, 60_000), ("b", 9_000, None)]


def test_a_member_that_is_not_in_the_next_decision_is_closed_by_it() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a", "b")), make_record(9, even("x", 2, "b"), generation=2))
    assert members_of(life) == [("a", 5, False, 1), ("b", 5, False, 1), ("a", 9, True, 0), ("b", 9, False, 2)]


def test_members_of_an_empty_group_are_closed_once() -> None:
    life = Life()
    life.take(make_record(5, even("x", 2, "a")), make_record(9, generation=2), make_observation(10), make_tombstone(12))
    life.take(make_observation(20, gone="deleted"))
    assert members_of(life) == [("a", 5, False, 2), ("a", 9, True, 0)]


def test_a_tombstone_closes_the_members() -> None:
    life = Life()
    life.take(
        make_record(5, even("x", 2, "a")),
        make_tombstone(12),
        make_observation(20),
        make_observation(30, gone="deleted"),
    )
    assert members_of(life) == [("a", 5, False, 2), ("a", 12, True, 0)]


def test_a_group_that_is_not_listed_any_more_closes_its_members() -> None:
    life = Life()
    life.take(
        make_record(5, even("x", 2, "a")),
        make_observation(10, make_topic("x", 2)),
        make_observation(30, gone="filtered"),
    )
    assert members_of(life) == [("a", 5, False, 2), ("a", 30, True, 0)]


def test_what_cannot_be_decoded_of_a_member_is_null() -> None:
    life = Life()
    life.take(make_record(5, (make_member("a", None, assigned=None, undecodable="subscription: cut"),)))
    (row,) = life.rows.members
    assert (row.subscription, row.partition_count, row.partitions) == (None, None, None)
    assert row.undecodable == "subscription: cut"


def storm(first: int, last: int) -> list[GroupInput]:
    """A generation every second."""
    return [make_record(number, even("x", 2, "a", "b"), generation=number) for number in range(first, last + 1)]


def test_decisions_that_pile_up_without_a_round_are_counted_beyond_a_thousand_and_their_rows_say_so() -> None:
    life = Life()
    # A group that rebalances for an hour while the probe is down.
    life.take(*storm(1, 1_200))
    assert life.state is not None
    assert len(life.state.classic.waiting) == 64 + 1_000
    rows = life.take(make_observation(1_300, make_topic("x", 2)))
    assert len(life.rows.rebalance_churn) == 1_200
    oldest, second = rows.drift[:2]
    assert (oldest.generation, oldest.verdict) == (137, "unverified")
    assert oldest.reason == (
        "too many generations passed without a round: not recomputed, nor are 136 before it, which have no row here"
    )
    assert second.reason == "too many generations passed without a round: not recomputed"
    assert [row.verdict for row in rows.drift[-64:]] == ["identical"] * 64


def test_what_is_kept_of_them_stays_small() -> None:
    life = Life()
    life.take(*storm(1, 1_300))
    assert life.state is not None
    size = len(encode_state(life.state)[1])
    life.take(*storm(1_301, 1_500))
    assert len(encode_state(life.state)[1]) == pytest.approx(size, rel=0.01)
    assert size < 200_000
