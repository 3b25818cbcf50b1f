"""Rebalances: one row per decision, with the changes."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups import encode_state
from streaming.groups.rows import ReplacedMember
from streaming.records import GroupInput, Member, MembershipRecord
from tests.groups.build import (
    GROUP,
    LOG_PARTITION,
    SECOND,
    START,
    Life,
    churn_of,
    even,
    make_cooperative,
    make_member,
    make_observation,
    make_record,
    make_tombstone,
    make_topic,
)


def test_a_group_made_by_a_join_that_wrote_nothing_else_is_created() -> None:
    (row,) = churn_of(make_record(3, generation=0, protocol_type=""))
    assert (row.kind, row.generation, row.previous_generation, row.members) == ("created", 0, None, 0)
    assert (row.joined, row.left, row.partitions_moved, row.strategy, row.leader) == ((), (), 0, None, None)


def test_a_row_tells_the_decision() -> None:
    (row,) = churn_of(make_record(5, even("x", 3, "a", "b")))
    assert (row.cluster, row.group_id, row.log_partition, row.decision) == ("test", GROUP, LOG_PARTITION, 5)
    assert (row.record_time, row.join_completed_time) == (START + 5 * SECOND, START + 5 * SECOND - 20)
    assert (row.kind, row.revision, row.incarnation, row.generation) == ("rebalance", 1, 5, 1)
    assert (row.protocol_type, row.strategy, row.leader) == ("consumer", "range", "a")
    assert (row.members, row.partitions, row.joined, row.left) == (2, 3, ("a", "b"), ())


@pytest.mark.parametrize(("state_time", "completed"), [(-1, None), (0, 0)])
def test_when_the_join_completed_is_unknown_where_the_record_does_not_say(
    state_time: int, completed: int | None
) -> None:
    (row,) = churn_of(make_record(5, even("x", 3, "a"), state_time=state_time))
    assert row.join_completed_time == completed


def test_who_joined_and_who_left_is_told() -> None:
    rows = churn_of(make_record(5, even("x", 3, "a", "b")), make_record(9, even("x", 3, "b", "c"), generation=2))
    assert (rows[1].joined, rows[1].left) == (("c",), ("a",))
    assert (rows[1].previous_generation, rows[1].generations_skipped, rows[1].follows) == (1, 0, None)


def test_moves_are_partitions_that_changed_hands() -> None:
    rows = churn_of(
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
    rows = churn_of(make_record(5, even("x", 3, "a", "b")), make_record(9, generation=2))
    assert (rows[1].kind, rows[1].left, rows[1].members, rows[1].partitions_moved) == ("became_empty", ("a", "b"), 0, 0)


def test_skipped_generations_are_counted() -> None:
    rows = churn_of(make_record(5, even("x", 3, "a"), generation=3), make_record(9, even("x", 3, "a"), generation=7))
    assert (rows[1].previous_generation, rows[1].generations_skipped) == (3, 3)


def test_a_lower_generation_begins_a_new_incarnation() -> None:
    rows = churn_of(make_record(5, even("x", 3, "a"), generation=8), make_record(9, even("x", 3, "b"), generation=1))
    assert (rows[1].kind, rows[1].incarnation, rows[1].previous_generation) == ("rebalance", 9, None)
    assert (rows[1].generations_skipped, rows[1].joined, rows[1].left) == (None, ("b",), ())


def test_the_same_generation_with_other_members_is_a_new_incarnation() -> None:
    rows = churn_of(make_record(5, even("x", 3, "a")), make_record(9, even("x", 3, "b")))
    assert (rows[1].kind, rows[1].incarnation) == ("rebalance", 9)


def test_a_group_deleted_and_made_again_is_a_new_incarnation() -> None:
    rows = churn_of(
        make_record(5, even("x", 3, "a")), make_tombstone(7), make_record(9, even("x", 3, "a"), generation=2)
    )
    assert (rows[1].incarnation, rows[1].previous_generation, rows[1].partitions_moved, rows[1].left) == (
        9,
        None,
        None,
        (),
    )


def test_a_static_member_s_return_is_no_rebalance() -> None:
    def member(member_id: str) -> Member:
        return make_member(member_id, ("x",), {"x": (0,)}, group_instance_id="i1")

    rows = churn_of(make_record(5, (member("old"),)), make_record(9, (member("new"),)))
    row = rows[1]
    assert (row.kind, row.generation, row.incarnation, row.generations_skipped) == ("static_replacement", 1, 5, 0)
    assert row.replaced == (ReplacedMember("i1", "old", "new"),)
    assert (row.joined, row.left, row.partitions_moved) == ((), (), 0)


def test_a_static_member_that_returns_in_a_rebalance_neither_joined_nor_left() -> None:
    rows = churn_of(
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
    rows = churn_of(
        make_cooperative(5, 1, a=(0, 1, 2)),
        make_cooperative(9, 2, a=(0, 1), b=()),
        make_cooperative(11, 3, a=(0, 1), b=(2,)),
    )
    assert [row.kind for row in rows] == ["rebalance"] * 3
    assert [row.partitions_pending_handover for row in rows] == [0, 1, 0]
    assert [row.partitions_moved for row in rows] == [0, 0, 1]
    assert [row.partitions_moved_optimal for row in rows] == [0, None, 1]
    assert [row.follows for row in rows] == [None, None, 9]


def test_a_partition_given_up_and_given_back_has_not_moved() -> None:
    rows = churn_of(
        make_cooperative(5, 1, a=(0, 1)), make_cooperative(9, 2, a=(0,), b=()), make_cooperative(11, 3, a=(0, 1))
    )
    assert [row.partitions_moved for row in rows] == [0, 0, 0]


def test_a_transfer_over_three_generations_is_one_move_from_first_to_last_owner() -> None:
    rows = churn_of(
        make_cooperative(5, 1, a=(0, 1)),
        make_cooperative(9, 2, a=(0,), b=()),
        make_cooperative(11, 3, a=(0,), b=(), c=()),
        make_cooperative(13, 4, a=(0,), b=(), c=(1,)),
    )
    assert [row.partitions_moved for row in rows] == [0, 0, 0, 1]
    assert [row.partitions_pending_handover for row in rows] == [0, 1, 1, 0]
    assert [row.follows for row in rows] == [None, None, 9, 11]


def test_a_static_member_s_return_in_the_middle_of_a_handover_does_not_follow_it() -> None:
    def record(number: int, generation: int, member_id: str, of_b: tuple[int, ...]) -> GroupInput:
        a = make_member(member_id, ("x",), {"x": (0,)}, group_instance_id="i1")
        b = make_member("b", ("x",), {"x": of_b} if of_b else {})
        return make_record(number, (a, b), generation=generation, protocol="cooperative-sticky")

    rows = churn_of(
        make_cooperative(5, 1, old=(0, 1)),
        record(9, 2, "old", ()),
        record(10, 2, "new", ()),
        record(11, 3, "new", (1,)),
    )
    assert [row.kind for row in rows[2:]] == ["static_replacement", "rebalance"]
    assert [row.follows for row in rows] == [None, None, None, 9]
    assert [row.partitions_moved for row in rows] == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("generation", "second", "moved"),
    [
        pytest.param(1, {"a": (0,), "b": (1,)}, 0, id="nothing came before the group's first generation"),
        pytest.param(2, {"a": (0,), "b": (1,)}, None, id="partition 1 may have had an owner in generation 1"),
        pytest.param(2, {"b": (1,)}, None, id="partition 1 alone may have had one"),
        pytest.param(2, {"a": (0,), "b": ()}, 0, id="no partition without an owner was assigned"),
    ],
)
def test_moves_are_unknown_where_an_unseen_generation_may_have_begun_a_handover(
    generation: int, second: dict[str, tuple[int, ...]], moved: int | None
) -> None:
    rows = churn_of(make_cooperative(5, generation, a=(0,)), make_cooperative(9, generation + 1, **second))
    assert rows[1].partitions_moved == moved


def test_a_topic_that_nobody_wants_any_more_is_not_in_transfer() -> None:
    rows = churn_of(
        make_record(5, (make_member("a", ("x", "y"), {"x": (0,), "y": (0,)}),), protocol="cooperative-sticky"),
        make_record(9, (make_member("a", ("x",), {"x": (0,)}),), generation=2, protocol="cooperative-sticky"),
    )
    assert rows[1].partitions_pending_handover == 0


def test_an_unknown_strategy_may_hand_over_in_two_steps() -> None:
    def streams(record: int, generation: int, a: tuple[int, ...], b: tuple[int, ...]) -> GroupInput:
        members = (make_member("a", ("x",), {"x": a}), make_member("b", ("x",), {"x": b} if b else {}))
        return make_record(record, members, generation=generation, protocol="stream")

    rows = churn_of(streams(5, 1, (0, 1), ()), streams(9, 2, (0,), ()), streams(11, 3, (0,), (1,)))
    assert [row.partitions_moved for row in rows] == [0, 0, 1]


def test_an_eager_strategy_that_leaves_a_partition_out_transfers_nothing() -> None:
    rows = churn_of(
        make_record(5, (make_member("a", ("x",), {"x": (0, 1)}),)),
        make_record(9, (make_member("a", ("x",), {"x": (0,)}),), generation=2),
    )
    assert rows[1].partitions_pending_handover == 0


def test_what_was_before_the_first_record_after_compaction_is_unknown() -> None:
    (row,) = churn_of(make_record(5, even("x", 3, "a", "b"), generation=41))
    assert (row.joined, row.partitions_moved, row.partitions_moved_optimal, row.previous_generation) == (
        None,
        None,
        None,
        None,
    )


def test_an_undecodable_assignment_leaves_moves_unknown() -> None:
    rows = churn_of(
        make_record(5, even("x", 3, "a")),
        make_record(9, (make_member("a", ("x",), None, undecodable="assignment: cut"),), generation=2),
    )
    assert (rows[1].partitions_moved, rows[1].partitions_moved_optimal, rows[1].partitions) == (None, None, 0)


def test_an_undecodable_subscription_hides_neither_partitions_nor_moves() -> None:
    unread = "subscription: cut"
    rows = churn_of(
        make_record(5, even("x", 4, "a", "b")),
        make_record(
            9,
            (make_member("a", ("x",), {"x": (0,)}), make_member("b", None, {"x": (1, 2, 3)}, undecodable=unread)),
            generation=2,
        ),
    )
    assert (rows[1].partitions, rows[1].partitions_moved, rows[1].partitions_moved_optimal) == (4, 1, None)


def test_partitions_count_as_far_as_assignments_decode() -> None:
    members = make_member("a", ("x",), {"x": (0, 1)}), make_member("b", ("x",), None, undecodable="assignment: cut")
    (row,) = churn_of(make_record(5, members))
    assert (row.partitions, row.partitions_moved) == (2, None)


def test_a_partition_with_two_owners_has_not_moved_while_one_of_them_stays() -> None:
    def owned(record: int, generation: int, **partitions: tuple[int, ...]) -> MembershipRecord:
        members = [make_member(name, ("x",), {"x": of}) for name, of in partitions.items()]
        return make_record(record, members, generation=generation)

    rows = churn_of(
        owned(5, 1, a=(0, 1), b=(2, 3)),
        owned(9, 2, a=(0, 1, 2, 3), b=(0, 1, 2, 3)),
        owned(13, 3, a=(0, 2), b=(1, 3)),
        owned(17, 4, a=(1, 2), b=(0, 3)),
    )
    first = [row for row in rows if row.revision == 1]
    assert [row.partitions_moved for row in first] == [0, 0, 0, 2]
    assert [row.partitions for row in first] == [4, 4, 4, 4]


def test_a_topic_of_a_member_whose_subscription_is_unknown_is_still_handed_over() -> None:
    first = make_cooperative(5, 1, a=(0, 1, 2))
    unread = make_member("b", None, {"x": (0,)}, undecodable="subscription: cut")
    members = make_member("a", ("x",), {"x": (1,)}), unread
    rows = churn_of(first, make_record(9, members, generation=2, protocol="cooperative-sticky"))
    assert rows[1].partitions_pending_handover == 1


def test_a_connect_group_has_churn_without_partitions() -> None:
    worker = make_member("w", None, assigned=None)
    (row,) = churn_of(make_record(5, (worker,), protocol_type="connect", protocol="sessioned"))
    assert (row.kind, row.members, row.partitions, row.partitions_moved) == ("rebalance", 1, 0, None)


@pytest.mark.parametrize("generation", [-(2**31), 2**31 - 1])
def test_odd_generations_fit_the_columns(generation: int) -> None:
    rows = churn_of(
        make_record(5, even("x", 3, "a"), generation=-(2**31)), make_record(9, even("x", 3, "a"), generation=generation)
    )
    assert rows[1].generations_skipped in {0, 2**31 - 1}


def storm(first: int, last: int) -> list[GroupInput]:
    """A generation every second."""
    return [make_record(number, even("x", 2, "a", "b"), generation=number) for number in range(first, last + 1)]


def test_decisions_that_pile_up_without_a_round_are_counted_beyond_a_thousand_and_their_rows_say_so() -> None:
    # A group that rebalances for an hour while the probe is down.
    life = Life.after(*storm(1, 1_200))
    assert life.state is not None
    assert len(life.state.classic.waiting) == 64 + 1_000
    rows = life.take(make_observation(1_300, make_topic("x", 2)))
    assert len({row.decision for row in life.rows.rebalance_churn}) == 1_200
    oldest, second = rows.drift[:2]
    assert (oldest.generation, oldest.verdict) == (137, "unverified")
    assert oldest.reason == (
        "too many generations passed without a round: not recomputed, nor are 136 before it, which have no row here"
    )
    assert second.reason == "too many generations passed without a round: not recomputed"
    assert [row.verdict for row in rows.drift[-64:]] == ["identical"] * 64


def test_what_is_kept_of_them_stays_small() -> None:
    life = Life.after(*storm(1, 1_300))
    assert life.state is not None
    size = len(encode_state(life.state)[1])
    life.take(*storm(1_301, 1_500))
    assert len(encode_state(life.state)[1]) == pytest.approx(size, rel=0.01)
    assert size < 200_000


def test_the_verdict_on_a_dropped_decision_names_200_characters_of_its_strategy() -> None:
    life = Life()
    for generation in range(1, 66):
        name = "n" * 500 if generation == 1 else "range"
        life.take(make_record(generation, even("x", 4, "a", "b"), generation=generation, protocol=name))
    [dropped, *_] = life.take(make_observation(100, make_topic("x", 4))).drift
    assert (dropped.generation, dropped.strategy) == (1, "n" * 200)


def test_another_assignment_under_the_same_generation_is_judged_like_any_other() -> None:
    life = Life.after(make_record(5, even("x", 4, "a", "b"), generation=5), make_observation(10, make_topic("x", 4)))
    twice = (make_member("a", ("x",), {"x": (0, 1, 2)}), make_member("b", ("x",), {"x": (2,)}))
    life.take(make_record(15, twice, generation=5), make_observation(20, make_topic("x", 4)))
    assert [(row.decision, row.kind) for row in life.rows.rebalance_churn] == [(5, "rebalance"), (15, "rebalance")]
    assert [(row.decision, row.verdict) for row in life.rows.drift] == [(5, "identical"), (15, "drifted")]


def test_decisions_that_are_dropped_keep_no_long_names() -> None:
    life = Life()
    name = "n" * 30_000
    for generation in range(1, 101):
        members = (make_member(name, ("x",), {"x": (0, 1)}),)
        life.take(make_record(generation, members, generation=generation, leader=name, protocol=name))
    assert life.state is not None
    dropped = [waiting for waiting in life.state.classic.waiting if waiting.kind == "dropped"]
    assert len(dropped) == 36
    assert len(msgspec.msgpack.encode(dropped)) < 36 * 1_000
