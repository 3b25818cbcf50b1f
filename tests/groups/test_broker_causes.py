"""Why a coordinator moved, where a round has seen it: a further revision of the decision's row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streaming.groups.rows import ChurnRow
from streaming.records import CoordinatorMove, GroupEpoch, GroupInput, GroupObservation, TargetEpoch
from tests.groups.build import Life, even, make_commit, make_observation, make_record, make_topic
from tests.groups.modern_log import FIRST, SECOND_MEMBER, epoch, gone, observation, owns, read, stands

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


GONE_DOWN = ("broker_down", "2", "1")

# The leader epochs of the two decisions, rounds before the second and after it, and the causes.
Told = list[tuple[str, str | None, str | None]]
SEEN: dict[str, tuple[tuple[int, int], list[GroupInput], list[GroupInput], Told]] = {
    "a round before the decision may have seen it already": (
        (7, 8),
        [seen(6), seen(700, DOWN)],
        [seen(901, DOWN)],
        [MOVED[0], GONE_DOWN],
    ),
    "a broker that went and came back is both": (
        (7, 9),
        [seen(6)],
        [seen(901, DOWN, BACK)],
        [MOVED[0], GONE_DOWN, ("broker_up", "1", "2")],
    ),
    "a move before the decision does not hide the one that counts": (
        (7, 8),
        [seen(6)],
        [seen(901, CoordinatorMove(3, 2, 5, 6, gone_round=100), DOWN)],
        [MOVED[0], GONE_DOWN],
    ),
    **{
        f"a move that no round explains stays what it is: {why}": (
            (7, 8),
            [seen(6)],
            [seen(901, *moves), seen(902, DOWN)],
            MOVED,
        )
        for why, *moves in (
            ("there is none",),
            ("nobody saw why", CoordinatorMove(2, 1, 7, 8)),
            ("it began before the previous decision", CoordinatorMove(2, 1, 6, 8, gone_round=640)),
            ("it ended after this one", CoordinatorMove(2, 1, 7, 9, gone_round=640)),
            ("it is the next one", CoordinatorMove(1, 2, 8, 9, gone_round=640)),
        )
    },
    **{
        f"a round that looked before the move is not the last word: {epoch}": (
            (7, 8),
            [seen(6, epoch=epoch)],
            [seen(901, epoch=epoch), seen(902, DOWN, epoch=8)],
            [MOVED[0], GONE_DOWN],
        )
        for epoch in (0, 7)
    },
    "the first round that knows the new coordinator is the last word": (
        (7, 8),
        [seen(6)],
        [seen(901, epoch=8), seen(902, DOWN, epoch=8)],
        MOVED,
    ),
    "a coordinator that did not move has no such cause": ((7, 7), [seen(6)], [seen(901, DOWN)], MOVED[:1]),
}


@pytest.mark.parametrize("case", SEEN)
def test_a_move_has_the_reason_that_the_first_round_to_know_it_tells(case: str) -> None:
    epochs, before, after, expected = SEEN[case]
    first, second = decisions(*epochs)
    assert told(lived(first, *before, second, *after)) == expected


def test_a_row_without_a_reason_has_no_revision_for_it() -> None:
    first, second = decisions()
    with_move = lived(first, seen(6), second, seen(901), seen(902))
    without = lived(*decisions(7, 7), seen(901), seen(902))
    count = [sum(row.decision == 900 for row in life.rows.rebalance_churn) for life in (with_move, without)]
    assert count[0] == count[1]


def moved_modern() -> list[GroupInput]:
    """The log of a group that a broker assigns: b joins a, and the coordinator has moved."""
    return [
        msgspec.structs.replace(item, leader_epoch=6 + item.epoch)
        if isinstance(item, TargetEpoch | GroupEpoch)
        else item
        for item in [*read(FIRST), *read(SECOND_MEMBER, 15)]
    ]


def test_a_handover_that_ends_before_a_round_sees_the_move_stays_in_the_row() -> None:
    life = lived(observation(9, coordinator_epoch=7), *moved_modern(), observation(25, coordinator_epoch=7))
    life.take(*read([owns("a", 2, 0, 1)], 30), *read([owns("b", 2, 2, 3)], 37))
    life.take(observation(40, coordinator_moves=(DOWN,), coordinator_epoch=8))
    rows = [row for row in life.rows.rebalance_churn if row.generation == 2]
    assert [row.revision for row in rows] == list(range(1, len(rows) + 1))
    assert [found.cause for found in rows[-1].causes or ()] == ["member_joined", "broker_down"]
    # B's partitions have been without an owner from 30 to 37.
    assert rows[-1].unassigned_partition_seconds_min == 14.0


def test_why_the_coordinator_of_a_group_moved_that_ended_before_any_round_is_not_told() -> None:
    ends = [*gone("a", "b"), *((written[0], None) for written in (stands(2), epoch(2)))]
    life = lived(*moved_modern(), *read(ends, 50), make_commit(60, 5))
    told = len(life.rows.rebalance_churn)
    life.take(observation(70, coordinator_moves=(DOWN,), coordinator_epoch=8))
    assert len(life.rows.rebalance_churn) == told
