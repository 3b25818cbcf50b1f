"""Why a coordinator moved, where a round has seen it: a further revision of the decision's row."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.groups.rows import Cause, ChurnRow
from streaming.records import CoordinatorMove, GroupInput, GroupObservation
from tests.groups.build import Life, even, make_observation, make_record, make_topic

DOWN = CoordinatorMove(2, 1, 7, 8, gone_round=640)
BACK = CoordinatorMove(1, 2, 8, 9, back_since=1_767_225_600_000)


def decisions(first: int = 7, second: int = 8) -> tuple[GroupInput, GroupInput]:
    """A member is gone, and the leader epoch of the group's log partition is another one."""
    return (
        make_record(5, even("x", 4, "a", "b"), leader_epoch=first),
        make_record(900, even("x", 4, "a"), generation=2, leader_epoch=second),
    )


def seen(at: int, *moves: CoordinatorMove, epoch: int = 9, **changes: Any) -> GroupObservation:
    topic = make_topic("x", 4)
    return make_observation(at, topic, coordinator_moves=moves, coordinator_epoch=epoch, **changes)


def newest(life: Life) -> ChurnRow:
    """The newest revision of the second decision's row; revisions have no holes and no doubles."""
    rows = [row for row in life.rows.rebalance_churn if row.decision == 900]
    assert [row.revision for row in rows] == list(range(1, len(rows) + 1))
    return rows[-1]


def told(life: Life) -> list[tuple[str, str | None, str | None]]:
    return [(found.cause, found.before, found.after) for found in newest(life).causes or ()]


def lived(*inputs: GroupInput) -> Life:
    life = Life()
    for item in inputs:
        life.take(item)
    return life


MOVED = [("member_gone", None, None), ("coordinator_moved", "7", "8")]


def test_a_coordinator_whose_broker_a_round_misses_went_down() -> None:
    first, second = decisions()
    life = lived(first, seen(6), second)
    assert told(life) == MOVED
    life.take(seen(901, DOWN))
    assert told(life) == [("member_gone", None, None), ("broker_down", "2", "1")]
    evidence = (newest(life).causes or ())[-1].evidence
    assert evidence == (
        "broker 2 coordinated the group, and round 640 did not have it any more; broker 1 took over "
        "(leader epoch 7 to 8)"
    )


def test_a_round_before_the_decision_may_have_seen_it_already() -> None:
    first, second = decisions()
    assert told(lived(first, seen(6), seen(700, DOWN), second, seen(901, DOWN)))[-1] == ("broker_down", "2", "1")


def test_a_broker_that_went_and_came_back_is_both() -> None:
    first, second = decisions(7, 9)
    found = told(lived(first, seen(6), second, seen(901, DOWN, BACK)))
    assert found[1:] == [("broker_down", "2", "1"), ("broker_up", "1", "2")]


@pytest.mark.parametrize(
    "moves",
    [
        (),
        (CoordinatorMove(2, 1, 7, 8),),  # nobody saw why
        (CoordinatorMove(2, 1, 6, 8, gone_round=640),),  # it began before the previous decision
        (CoordinatorMove(2, 1, 7, 9, gone_round=640),),  # it ended after this one
        (CoordinatorMove(1, 2, 8, 9, gone_round=640),),  # the next one
    ],
)
def test_a_move_that_no_round_explains_stays_what_it_is(moves: tuple[CoordinatorMove, ...]) -> None:
    first, second = decisions()
    assert told(lived(first, seen(6), second, seen(901, *moves), seen(902, DOWN))) == MOVED


@pytest.mark.parametrize("epoch", [0, 7])
def test_a_round_that_looked_before_the_move_is_not_the_last_word(epoch: int) -> None:
    first, second = decisions()
    life = lived(first, seen(6, epoch=epoch), second, seen(901, epoch=epoch))
    assert told(life) == MOVED
    life.take(seen(902, DOWN, epoch=8))
    assert told(life)[-1] == ("broker_down", "2", "1")


def test_a_coordinator_that_did_not_move_has_no_such_cause() -> None:
    first, second = decisions(7, 7)
    assert told(lived(first, seen(6), second, seen(901, DOWN))) == MOVED[:1]


def test_a_row_without_a_reason_has_no_revision_for_it() -> None:
    first, second = decisions()
    with_move = lived(first, seen(6), second, seen(901), seen(902))
    without = lived(*decisions(7, 7), seen(901), seen(902))
    count = [sum(row.decision == 900 for row in life.rows.rebalance_churn) for life in (with_move, without)]
    assert count[0] == count[1]


def test_causes_stay_in_order_and_others_as_they_were() -> None:
    first, second = decisions()
    life = lived(first, seen(6), second, seen(901, DOWN))
    before: list[Cause] = [
        found
        for row in life.rows.rebalance_churn
        if row.decision == 900 and row.revision == 1
        for found in row.causes or ()
    ]
    assert (newest(life).causes or ())[0] == before[0]


def test_a_move_of_before_the_decision_does_not_hide_the_one_that_counts() -> None:
    first, second = decisions()
    earlier = CoordinatorMove(3, 2, 5, 6, gone_round=100)
    life = lived(first, seen(6), second)
    life.take(seen(901, earlier, DOWN))
    assert told(life) == [("member_gone", None, None), ("broker_down", "2", "1")]
