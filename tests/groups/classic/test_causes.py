"""Causes of a classic group's rebalances: what log and rounds prove, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.causes import CAUSES, MEMBERS_SHOWN
from streaming.groups.rows import Cause, ChurnRow
from streaming.records import Compacted, GroupInput, Member
from tests.groups.build import Life, even, make_commits, make_member, make_observation, make_record, make_topic


def rows_of(*inputs: GroupInput) -> list[ChurnRow]:
    life = Life.after(*inputs)
    return [row for row in life.rows.rebalance_churn if row.revision == 1]


def causes_of(*inputs: GroupInput) -> list[str]:
    """Causes of the newest decision."""
    return [found.cause for found in rows_of(*inputs)[-1].causes or ()]


def only(*inputs: GroupInput) -> Cause:
    """The only cause of the newest decision."""
    (found,) = rows_of(*inputs)[-1].causes or ()
    return found


def two(record: int, generation: int, **changes: Any) -> GroupInput:
    return make_record(record, even("x", 4, "a", "b"), generation=generation, **changes)


def three(record: int, generation: int) -> GroupInput:
    return make_record(record, even("x", 4, "a", "b", "c"), generation=generation)


def test_the_first_members_of_a_new_group_joined() -> None:
    found = only(two(5, 1))
    assert (found.cause, found.count, found.members) == ("member_joined", 2, ("a", "b"))


def test_a_group_created_without_members_has_no_causes() -> None:
    (row,) = rows_of(make_record(3, generation=0, protocol_type=""))
    assert row.causes == ()


def test_what_came_before_the_first_record_of_an_older_group_is_unknown() -> None:
    found = only(two(5, 41))
    assert (found.cause, found.evidence) == ("unknown", "the decision before it is not known")


def test_a_member_that_joined_is_named() -> None:
    found = only(two(5, 1), three(900, 2))
    assert (found.cause, found.count, found.members) == ("member_joined", 1, ("c",))


def test_a_member_gone_before_any_timeout_can_have_ended_left() -> None:
    # 20 s after the join phase; its session times out after 45 s at the earliest.
    found = only(three(5, 1), two(25, 2))
    assert (found.cause, found.members) == ("member_left", ("c",))
    assert found.evidence == (
        "joined or committed within 20.0 s before the join phase completed, and no rebalance had begun 20.0 s before; "
        "the session timeout is 45.0 s, the rebalance timeout 300.0 s"
    )


@pytest.mark.parametrize("seconds", [23, 45, 4_000])
def test_a_member_gone_later_may_have_left_or_expired(seconds: int) -> None:
    # From half of the timeout on the brokers' clocks are not trusted.
    assert causes_of(three(5, 1), two(5 + seconds, 2)) == ["member_gone"]


def test_a_short_rebalance_timeout_is_a_timeout_too() -> None:
    def members(*names: str) -> list[Member]:
        return [make_member(name, ("x",), {"x": (at,)}, rebalance_timeout=9_000) for at, name in enumerate(names)]

    assert causes_of(make_record(5, members("a", "b")), make_record(9, members("a"), generation=2)) == ["member_left"]
    assert causes_of(make_record(5, members("a", "b")), make_record(10, members("a"), generation=2)) == ["member_gone"]


def test_of_several_gone_members_each_has_its_own_timeouts() -> None:
    quick = make_member("quick", ("x",), {"x": (0,)}, session_timeout=6_000)
    slow = make_member("slow", ("x",), {"x": (1,)})
    stays = make_member("stays", ("x",), {"x": (2,)})
    before, after = make_record(5, (quick, slow, stays)), make_record(15, (stays,), generation=2)
    found = rows_of(before, after)[-1].causes or ()
    assert [(c.cause, c.members) for c in found] == [("member_left", ("slow",)), ("member_gone", ("quick",))]


def test_without_the_time_of_the_join_phase_a_gone_member_is_just_gone() -> None:
    before = make_record(5, even("x", 4, "a", "b", "c"), state_time=-1)
    assert causes_of(before, two(6, 2)) == ["member_gone"]
    assert causes_of(three(5, 1), two(6, 2, state_time=-1)) == ["member_gone"]


def test_a_clock_that_goes_back_proves_nothing() -> None:
    record = two(25, 2)
    assert causes_of(make_record(20, even("x", 4, "a", "b", "c"), time=record.record_time + 1), record) == [
        "member_gone"
    ]


def test_the_last_members_of_a_group_are_gone_too() -> None:
    found = only(two(5, 1), make_record(900, generation=2))
    assert (found.cause, found.count) == ("member_gone", 2)


def test_an_empty_group_that_becomes_empty_again_was_never_told_by_whom() -> None:
    assert causes_of(two(5, 1), make_record(900, generation=2), make_record(950, generation=3)) == ["unknown"]


def test_of_many_members_only_the_first_are_named() -> None:
    names = [f"m{number:04}" for number in range(2_000)]
    joined = rows_of(make_record(5, even("x", 4_000, *names)))[-1].causes or ()
    assert [(c.cause, c.count, c.members) for c in joined] == [("member_joined", 2_000, tuple(names[:MEMBERS_SHOWN]))]


def static(record: int, generation: int, *members: tuple[str, str], topics: tuple[str, ...] = ("x",)) -> GroupInput:
    made = [
        make_member(name, topics, {"x": range(at, 2, len(members))}, group_instance_id=instance)
        for at, (instance, name) in enumerate(members)
    ]
    return make_record(record, made, generation=generation)


def test_a_static_member_s_return_is_a_replacement() -> None:
    found = only(static(5, 1, ("i", "old")), static(9, 1, ("i", "new")))
    assert (found.cause, found.members) == ("static_replacement", ("new",))


def test_after_a_static_members_return_the_time_of_the_join_phase_is_not_known() -> None:
    first = static(5, 1, ("i", "old"), ("j", "other"))
    assert causes_of(first, static(25, 2, ("i", "old"))) == ["member_left"]
    back = static(20, 1, ("i", "new"), ("j", "other"))
    assert causes_of(first, back, static(25, 2, ("i", "new"))) == ["member_gone"]


def test_a_static_member_that_returns_in_a_rebalance_neither_joined_nor_left() -> None:
    found = causes_of(static(5, 1, ("i", "old")), static(900, 2, ("i", "new"), ("j", "other")))
    assert found == ["member_joined", "static_replacement"]


def test_topics_that_members_add_or_remove_are_told_one_by_one() -> None:
    def record(at: int, generation: int, **topics: tuple[str, ...]) -> GroupInput:
        return make_record(at, [make_member(name, of) for name, of in topics.items()], generation=generation)

    before, after = record(5, 1, a=("x", "y"), b=("x",)), record(900, 2, a=("x",), b=("x", "z"), c=("q",))
    found = rows_of(before, after)[-1].causes or ()
    assert [(c.cause, c.topic, c.before, c.after, c.members) for c in found] == [
        ("member_joined", None, None, None, ("c",)),
        ("subscription_changed", "y", "1", "0", ("a",)),
        ("subscription_changed", "z", "0", "1", ("b",)),
    ]


def test_a_replaced_member_s_new_subscription_is_a_change() -> None:
    found = rows_of(static(5, 1, ("i", "old")), static(900, 2, ("i", "new"), topics=("x", "y")))[-1].causes or ()
    assert [(c.cause, c.topic) for c in found] == [("static_replacement", None), ("subscription_changed", "y")]


def test_of_many_topics_the_first_eight_are_named() -> None:
    names = tuple(f"t{number:03}" for number in range(100))
    before = make_record(5, (make_member("a", ("x",), {"x": (0,)}),))
    found = rows_of(before, make_record(900, (make_member("a", ("x", *names), {"x": (0,)}),), generation=2))[-1].causes
    assert [c.topic for c in found or ()] == [*names[:8], None]
    assert (found or ())[-1].count == 92


def test_the_order_of_a_subscription_is_no_change() -> None:
    one, other = make_member("a", ("x", "y"), {"x": (0,)}), make_member("a", ("y", "x"), {"x": (0,)})
    assert causes_of(make_record(5, (one,)), make_record(900, (other,), generation=2)) == ["rejoined"]


def test_members_that_join_anew_for_a_reason_that_is_not_recorded_rejoined() -> None:
    assert causes_of(two(5, 1), two(900, 2)) == ["rejoined"]


def test_another_strategy_is_told_with_both_names() -> None:
    found = only(two(5, 1), two(900, 2, protocol="roundrobin"))
    assert (found.cause, found.before, found.after) == ("strategy_changed", "range", "roundrobin")


def test_generations_without_a_record_are_told_beside_the_cause() -> None:
    found = rows_of(two(5, 1), two(900, 4))[-1].causes or ()
    assert [c.cause for c in found] == ["rejoined", "unfinished_generations"]
    assert found[1].evidence == "2 generations in between left no record in the log"


def held(record: int, generation: int, **partitions: tuple[int, ...]) -> GroupInput:
    members = [make_member(name, ("x",), {"x": owned} if owned else {}) for name, owned in partitions.items()]
    return make_record(record, members, generation=generation, protocol="cooperative-sticky")


def test_the_second_half_of_a_cooperative_rebalance_is_a_handover() -> None:
    inputs = held(5, 1, a=(0, 1, 2)), held(9, 2, a=(0, 1), b=()), held(11, 3, a=(0, 1), b=(2,))
    assert [[c.cause for c in row.causes or ()] for row in rows_of(*inputs)] == [
        ["member_joined"],
        ["member_joined"],
        ["handover"],
    ]


# Partition counts: as the leaders assigned them, and as rounds showed them.


def of_counts(*counts: int) -> list[GroupInput]:
    """A decision about `x` with each of these partition counts, a quarter of an hour apart."""
    return [
        make_record(5 + 900 * at, even("x", count, "a"), generation=at + 1) if count else lacking(5 + 900 * at, at + 1)
        for at, count in enumerate(counts)
    ]


def lacking(record: int, generation: int) -> GroupInput:
    """A decision of a leader that has no metadata for the topic."""
    return make_record(record, (make_member("a", ("x",)),), generation=generation)


def shows(position: int, count: int | None) -> GroupInput:
    return make_observation(position, make_topic("x", count))


def test_partitions_that_a_topic_gained_are_told() -> None:
    found = only(shows(1, 2), *of_counts(2, 3))
    assert (found.cause, found.topic, found.before, found.after) == ("partitions_changed", "x", "2", "3")


def test_they_are_told_before_any_round() -> None:
    assert causes_of(*of_counts(2, 3)) == ["partitions_changed"]
    assert causes_of(*of_counts(1, 2)) == ["partitions_changed"]


def test_a_count_that_a_round_had_shown_before_the_previous_decision_makes_that_one_s_metadata_stale() -> None:
    found = only(shows(1, 3), *of_counts(2, 3))
    assert (found.cause, found.topic, found.before, found.after) == ("metadata_stale", "x", "2", "3")


def test_a_round_between_the_two_decisions_makes_nothing_stale() -> None:
    assert causes_of(shows(1, 2), *of_counts(2), shows(500, 3), *of_counts(2, 3)[1:]) == ["partitions_changed"]


def test_a_topic_that_a_leader_did_not_know_yet_makes_its_metadata_stale() -> None:
    assert causes_of(shows(1, 3), *of_counts(0, 3)) == ["metadata_stale"]


def test_a_topic_that_did_not_exist_was_created() -> None:
    assert causes_of(shows(1, None), *of_counts(0, 3)) == ["partitions_changed"]


def test_without_a_round_a_topic_that_a_leader_did_not_know_proves_nothing() -> None:
    assert causes_of(*of_counts(0, 3)) == ["rejoined"]


def test_a_leader_that_assigns_less_proves_nothing() -> None:
    assert causes_of(shows(1, 3), *of_counts(3, 0)) == ["rejoined"]
    assert causes_of(*of_counts(3, 2)) == ["rejoined"]


def test_a_topic_became_smaller_where_a_round_says_so() -> None:
    assert causes_of(shows(1, 3), *of_counts(3), shows(500, 2), *of_counts(3, 2)[1:]) == ["partitions_changed"]


def test_a_topic_that_is_new_to_the_group_did_not_change() -> None:
    before = make_record(5, (make_member("a", ("y",), {"y": (0,)}),))
    after = make_record(900, (make_member("a", ("x", "y"), {"y": (0,), "x": (0, 1)}),), generation=2)
    assert causes_of(before, after) == ["subscription_changed"]


def test_partitions_that_a_cooperative_leader_holds_back_are_no_change() -> None:
    inputs = held(5, 1, a=(0, 1)), held(900, 2, a=(0,), b=()), held(905, 3, a=(0,), b=(1,))
    assert causes_of(*inputs[:2]) == ["member_joined"]
    assert causes_of(*inputs) == ["handover"]


def test_an_unknown_strategy_may_leave_partitions_out() -> None:
    def record(at: int, generation: int, count: int) -> GroupInput:
        return make_record(at, even("x", count, "a"), generation=generation, protocol="house-blend")

    assert causes_of(record(5, 1, 2), record(900, 2, 3)) == ["rejoined"]


def in_racks(position: int, *racks: str) -> GroupInput:
    return make_observation(position, make_topic("x", 2, racks=tuple((rack,) for rack in racks)))


def with_rack(record: int, generation: int, rack: str | None) -> GroupInput:
    return make_record(record, (make_member("a", ("x",), {"x": (0, 1)}, rack=rack),), generation=generation)


def test_other_racks_are_told_where_members_have_racks() -> None:
    inputs = in_racks(1, "r1", "r2"), with_rack(5, 1, "r1"), in_racks(500, "r1", "r3"), with_rack(900, 2, "r1")
    found = only(*inputs)
    assert (found.cause, found.topic) == ("racks_changed", "x")


@pytest.mark.parametrize("rack", [None, ""])
def test_racks_are_nothing_to_members_without(rack: str | None) -> None:
    inputs = in_racks(1, "r1", "r2"), with_rack(5, 1, rack), in_racks(500, "r1", "r3"), with_rack(900, 2, rack)
    assert causes_of(*inputs) == ["rejoined"]


def test_the_same_racks_after_a_while_are_no_change() -> None:
    other = in_racks(300, "r1"), in_racks(500, "r1", "r2")
    assert causes_of(in_racks(1, "r1", "r2"), with_rack(5, 1, "r1"), *other, with_rack(900, 2, "r1")) == ["rejoined"]


# The coordinator.


def test_a_newer_leader_epoch_of_the_log_partition_stands_beside_the_cause() -> None:
    found = rows_of(two(5, 1, leader_epoch=3), make_record(900, even("x", 4, "a"), generation=2, leader_epoch=5))
    assert [(c.cause, c.before, c.after) for c in found[-1].causes or ()] == [
        ("member_gone", None, None),
        ("coordinator_moved", "3", "5"),
    ]


def test_it_explains_no_rejoin_by_itself() -> None:
    assert causes_of(two(5, 1, leader_epoch=3), two(900, 2, leader_epoch=4)) == ["rejoined", "coordinator_moved"]


@pytest.mark.parametrize(("before", "after"), [(3, 3), (-1, 4), (3, -1), (4, 3)])
def test_equal_unknown_or_lower_epochs_claim_nothing(before: int, after: int) -> None:
    assert causes_of(two(5, 1, leader_epoch=before), two(900, 2, leader_epoch=after)) == ["rejoined"]


# Where less is known.


def test_in_a_compacted_stretch_nothing_is_claimed_about_the_time_before() -> None:
    assert causes_of(two(5, 1), Compacted(6, 950), three(900, 9)) == ["unknown"]


def test_members_that_cannot_be_decoded_have_no_subscription_to_compare() -> None:
    before = make_record(5, (make_member("a", None, assigned=None, undecodable="subscription: cut"),))
    assert causes_of(before, make_record(900, even("x", 2, "a"), generation=2)) == ["rejoined"]


def test_a_connect_group_has_causes_without_topics() -> None:
    def record(at: int, generation: int, *workers: str) -> GroupInput:
        members = [make_member(worker, None, assigned=None) for worker in workers]
        return make_record(at, members, generation=generation, protocol_type="connect", protocol="sessioned")

    assert causes_of(record(5, 1, "w"), record(900, 2, "w", "v")) == ["member_joined"]
    assert causes_of(record(5, 1, "w"), record(900, 2, "w")) == ["rejoined"]


def test_a_further_revision_repeats_the_causes() -> None:
    life = Life.after(*of_counts(2), *(make_commits(8, 1, topic="x", partition=p) for p in (0, 1)))
    life.take(make_record(20, even("x", 2, "a", "b"), generation=2))
    life.take(*(make_commits(30, 1, topic="x", partition=p) for p in (0, 1)), make_observation(40))
    first, second = life.rows.rebalance_churn[1:]
    assert (second.revision, second.causes) == (2, first.causes)


# How members rebalanced, and what stopped for nothing.


def owning(
    record: int, generation: int, protocol: str, **members: tuple[tuple[int, ...], tuple[int, ...]]
) -> GroupInput:
    """Members with what they are assigned and what they report to own."""
    made = [
        make_member(name, ("x",), {"x": assigned} if assigned else {}, owned=(("x", owned),) if owned else ())
        for name, (assigned, owned) in members.items()
    ]
    return make_record(record, made, generation=generation, protocol=protocol)


def cost_of(*inputs: GroupInput) -> tuple[str | None, int | None]:
    row = rows_of(*inputs)[-1]
    return row.rebalance_protocol, row.partitions_stopped_unmoved


def test_an_eager_rebalance_stops_partitions_that_keep_their_owner() -> None:
    # A keeps 0 and 1; 2 and 3 move to b.
    assert cost_of(make_record(5, even("x", 4, "a")), two(900, 2)) == ("eager", 2)


def test_a_cooperative_rebalance_stops_none_of_them() -> None:
    before = owning(5, 1, "cooperative-sticky", a=((0, 1), ()))
    assert cost_of(before, owning(900, 2, "cooperative-sticky", a=((0,), (0, 1)), b=((), ()))) == ("cooperative", 0)


def test_a_cooperative_member_that_reports_nothing_may_have_lost_its_partitions() -> None:
    before = owning(5, 1, "cooperative-sticky", a=((0,), ()), b=((1,), ()))
    after = owning(900, 2, "cooperative-sticky", a=((0,), (0,)), b=((1,), ()))
    assert cost_of(before, after) == ("cooperative", None)


def test_the_selected_strategy_alone_does_not_make_a_rebalance_cooperative() -> None:
    # Members that offer an eager strategy, too, join eagerly.
    before = owning(5, 1, "cooperative-sticky", a=((0, 1), ()))
    assert cost_of(before, owning(900, 2, "cooperative-sticky", a=((0, 1), ()))) == (None, None)


def test_other_strategies_may_be_either() -> None:
    assert cost_of(two(5, 1, protocol="house-blend"), two(900, 2, protocol="house-blend")) == (None, None)


def test_a_restarted_static_member_stopped_by_itself() -> None:
    before = static(5, 1, ("i", "old"), ("j", "stays"))
    assert cost_of(before, static(900, 2, ("i", "new"), ("j", "stays"))) == ("eager", 1)


def test_a_static_member_s_return_rebalances_nothing() -> None:
    assert cost_of(static(5, 1, ("i", "old")), static(9, 1, ("i", "new"))) == (None, None)


def test_in_a_new_group_nothing_stopped() -> None:
    assert cost_of(two(5, 1)) == ("eager", 0)


def test_every_cause_that_a_row_may_have_is_listed_once() -> None:
    assert len(set(CAUSES)) == len(CAUSES)


def test_every_topic_whose_partition_count_changed_is_named_and_no_other() -> None:
    names = [f"t{number:02d}" for number in range(40)]

    def record(at: int, generation: int, *grown: str) -> GroupInput:
        assigned = {name: range(3 if name in grown else 2) for name in names}
        return make_record(at, (make_member("a", names, assigned),), generation=generation)

    rows = rows_of(record(5, 1), record(900, 2, "t07", "t20", "t33"))
    found = [cause for cause in rows[-1].causes or () if cause.cause == "partitions_changed"]
    assert [(cause.topic, cause.before, cause.after) for cause in found] == [
        ("t07", "2", "3"),
        ("t20", "2", "3"),
        ("t33", "2", "3"),
    ]
