"""How a member went: what its commits and the rounds prove, and a counterexample to each rule."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.rows import Cause
from streaming.records import Compacted, GroupInput
from tests.groups.build import (
    SECOND,
    START,
    Life,
    even,
    make_commit,
    make_member,
    make_observation,
    make_record,
    make_topic,
)

# Three members, one partition each: "a" owns 0, "b" 1, "c" 2. Sessions last 45 s, join phases 300 s at the most. Unless
# a test says otherwise, an hour passes, rounds come every 10 s, and "c" is gone when the next join phase completes.
BEFORE, GONE = 5, 3_600


def before(**changes: Any) -> GroupInput:
    return make_record(BEFORE, even("x", 3, "a", "b", "c"), **changes)


def after(**changes: Any) -> GroupInput:
    return make_record(GONE, even("x", 3, "a", "b"), generation=2, **changes)


def commit(partition: int, at: int, **changes: Any) -> GroupInput:
    return make_commit(at, at, topic="x", partition=partition, **changes)


def round_at(position: int, state: str = "Stable", end: int = 10_000) -> GroupInput:
    return make_observation(position, make_topic("x", 3, end=end), state=state)


ROUNDS = [round_at(3_575), round_at(3_585), round_at(3_595)]
BUSY = [commit(0, 3_574), *ROUNDS]
"""A member that stays commits 26 s before, and rounds show the group stable until 15 s before."""


def causes(*inputs: GroupInput) -> list[Cause]:
    life = Life.after(*inputs)
    return [cause for cause in life.rows.rebalance_churn[-1].causes or () if cause.cause.startswith("member_")]


def only(*inputs: GroupInput) -> str:
    (found,) = causes(*inputs)
    assert found.members == ("c",)
    return found.cause


def test_a_commit_less_than_half_a_session_before_proves_that_the_member_left() -> None:
    (found,) = causes(before(), *BUSY, commit(2, 3_596), after())
    assert (found.cause, found.members) == ("member_left", ("c",))
    assert found.evidence == (
        "joined or committed within 4.0 s before the join phase completed, and no rebalance had begun 26.0 s before; "
        "the session timeout is 45.0 s, the rebalance timeout 300.0 s"
    )


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param([*BUSY, commit(2, 3_577)], id="the commit is older than half of the session timeout"),
        pytest.param([*BUSY, commit(1, 3_596)], id="another member has committed"),
        pytest.param([commit(2, 3_596)], id="no round has shown the group stable since the decision"),
        pytest.param(
            [commit(0, 3_574), *ROUNDS[:1], commit(2, 3_596)], id="only the newest round has, which may be late"
        ),
        pytest.param([*BUSY, commit(2, 3_601)], id="a clock went back: the commit is in the future"),
    ],
)
def test_a_member_is_just_gone_where(inputs: list[GroupInput]) -> None:
    assert only(before(), *inputs, after()) == "member_gone"


def test_a_member_that_did_not_rejoin_in_time_is_not_said_to_have_left() -> None:
    # The rebalance has begun before 3,300, and the phase lasts for the rebalance timeout of 300 s. The member goes on
    # committing, which the coordinator accepts while it waits for it, and is dropped.
    waiting = [round_at(at, "PreparingRebalance") for at in range(3_300, GONE, 10)]
    inputs = [before(), commit(0, 3_270), round_at(3_280), round_at(3_290), *waiting, commit(2, 3_596)]
    assert only(*inputs, after()) == "member_gone"


def test_the_state_of_a_round_may_belong_to_a_decision_that_its_log_position_does_not_have_yet() -> None:
    # The newest round read the log's position at 3,595, and the state after the phase had completed at 3,600.
    waiting = [round_at(at, "PreparingRebalance") for at in range(3_300, 3_590, 10)]
    inputs = [before(), commit(0, 3_270), *waiting, commit(2, 3_594), round_at(3_595, "Stable"), commit(2, 3_596)]
    assert only(*inputs, after()) == "member_gone"


def test_a_commit_of_the_generation_before_may_be_another_members() -> None:
    # "c" got the partition with this decision. Its owner before committed late.
    first = make_record(BEFORE, even("x", 3, "c", "a", "b"))
    second = make_record(3_590, even("x", 3, "a", "b", "c"), generation=2, state_time=-1)
    third = make_record(GONE, even("x", 3, "a", "b"), generation=3)
    assert (
        only(first, commit(2, 3_589), round_at(3_589), second, round_at(3_592), round_at(3_595), third) == "member_gone"
    )


def test_a_commit_for_a_partition_with_two_owners_may_be_the_other_members() -> None:
    members = (*even("x", 2, "a", "b"), make_member("c", ("x",), {"x": (1,)}))
    assert only(make_record(BEFORE, members), *BUSY, commit(1, 3_596), after()) == "member_gone"


def test_times_of_two_coordinators_are_not_compared() -> None:
    moved = [before(leader_epoch=3), *BUSY, commit(2, 3_596), after(leader_epoch=4)]
    assert [cause.cause for cause in causes(*moved)] == ["member_gone"]


def test_a_coordinators_clock_that_goes_back_proves_nothing_until_the_next_decision() -> None:
    # 26 s are set back at 3,590: a session that ended 48 s after the commit seems to have ended 22 s after it.
    inputs = [before(), *BUSY[:2], commit(2, 3_580), round_at(3_585), commit(0, 3_592, time=START + 3_566 * SECOND)]
    late = after(time=START + 3_602 * SECOND)
    assert only(*inputs, round_at(3_595), late) == "member_gone"
    assert (
        only(before(), *BUSY[:2], commit(2, 3_580), round_at(3_585), commit(0, 3_592), round_at(3_595), late)
        == "member_left"
    )


def test_what_compaction_has_taken_out_proves_nothing() -> None:
    assert only(before(), *BUSY, Compacted(3_595, 3_596), commit(2, 3_597), after()) == "member_gone"
    # A generation that compaction took out may have given the partition to another member, which commits.
    lately = make_record(3_540, even("x", 3, "a", "b", "c"))
    assert only(lately, commit(2, 3_596), after()) == "member_left"
    assert only(lately, Compacted(3_550, 3_590), commit(2, 3_596), after()) == "member_gone"


# Members that committed nothing although records waited.

IDLE = [round_at(at) for at in range(3_500, 3_600, 10)]


def test_a_member_whose_records_waited_was_silent_before_it_was_gone() -> None:
    (found,) = causes(before(), commit(2, 3_495), *IDLE, after())
    assert (found.cause, found.members) == ("member_silent", ("c",))
    assert found.evidence == (
        "committed nothing for 105.0 s, and was a member while records waited in its partitions for 80.0 s; the "
        "session timeout is 45.0 s"
    )


def test_a_member_with_nothing_to_read_was_not_silent() -> None:
    idle = [round_at(at, end=3_495) for at in range(3_500, 3_600, 10)]
    assert only(before(), commit(2, 3_495), *idle, after()) == "member_gone"


def test_a_member_that_left_a_rebalance_that_took_long_was_not_silent() -> None:
    # It committed and left at 3,505; another one let the phase last until 3,600.
    waiting = [round_at(at, "PreparingRebalance") for at in range(3_510, GONE, 10)]
    assert only(before(), round_at(3_490), commit(2, 3_495), round_at(3_500), *waiting, after()) == "member_gone"


def test_each_member_has_a_cause_of_its_own() -> None:
    gone = make_record(GONE, even("x", 3, "a"), generation=2)
    found = causes(before(), commit(1, 3_495), commit(2, 3_495), *IDLE, commit(1, 3_597), gone)
    assert [(c.cause, c.members) for c in found] == [("member_left", ("b",)), ("member_silent", ("c",))]
