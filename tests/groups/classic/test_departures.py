"""How a member went: what its commits and the rounds prove, and a counterexample to each rule."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.records import Compacted, GroupInput
from tests.groups.build import (
    SECOND,
    START,
    causes_of,
    decisions_of,
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


def waiting(since: int, until: int = GONE) -> list[GroupInput]:
    return [round_at(at, "PreparingRebalance") for at in range(since, until, 10)]


IDLE = [round_at(at) for at in range(3_500, 3_600, 10)]
LATE = after(time=START + 3_602 * SECOND)
# "c" got its partition with this decision. Its owner before committed late.
OTHERS = [
    *(make_record(BEFORE, even("x", 3, "c", "a", "b")), commit(2, 3_589), round_at(3_589)),
    make_record(3_590, even("x", 3, "a", "b", "c"), generation=2, state_time=-1),
    *(round_at(3_592), round_at(3_595), make_record(GONE, even("x", 3, "a", "b"), generation=3)),
]
# Records wait in the partition of "b" until "c" gets it with this decision, a minute before it is gone.
INHERITED = [
    *(make_record(BEFORE, even("x", 3, "c", "a", "b")), commit(2, 3_400)),
    *(round_at(at) for at in range(3_410, 3_540, 10)),
    make_record(3_540, even("x", 3, "a", "b", "c"), generation=2),
    *(round_at(3_545), round_at(3_555), make_record(GONE, even("x", 3, "a", "b"), generation=3)),
]
SHARED = make_record(BEFORE, (*even("x", 2, "a", "b"), make_member("c", ("x",), {"x": (1,)})))
LATELY = make_record(3_540, even("x", 3, "a", "b", "c"))


@pytest.mark.parametrize(
    ("inputs", "causes"),
    [
        pytest.param([before(), *BUSY, commit(2, 3_596), after()], ["member_left c"], id="a late commit"),
        pytest.param([before(), *BUSY, commit(2, 3_577), after()], ["member_gone c"], id="older than half a session"),
        pytest.param([before(), *BUSY, commit(1, 3_596), after()], ["member_gone c"], id="another member committed"),
        pytest.param([before(), commit(2, 3_596), after()], ["member_gone c"], id="no round has shown it stable since"),
        pytest.param(
            [before(), commit(0, 3_574), *ROUNDS[:1], commit(2, 3_596), after()],
            ["member_gone c"],
            id="only the newest round has, which may be late",
        ),
        pytest.param([before(), *BUSY, commit(2, 3_601), after()], ["member_gone c"], id="a commit in the future"),
        # The rebalance has begun before 3,300, and the phase lasts for the rebalance timeout of 300 s. The member goes
        # on committing, which the coordinator accepts while it waits for it, and is dropped.
        pytest.param(
            [
                *(before(), commit(0, 3_270), round_at(3_280), round_at(3_290)),
                *(*waiting(3_300), commit(2, 3_596), after()),
            ],
            ["member_gone c"],
            id="a member that did not rejoin in time is not said to have left",
        ),
        # The newest round read the log's position at 3,595, and the state after the phase had completed at 3,600.
        pytest.param(
            [
                *(before(), commit(0, 3_270), *waiting(3_300, 3_590), commit(2, 3_594)),
                *(round_at(3_595, "Stable"), commit(2, 3_596), after()),
            ],
            ["member_gone c"],
            id="the state of a round may belong to a decision that its log position does not have yet",
        ),
        pytest.param(INHERITED, ["member_gone c"], id="records waited for the owner before"),
        pytest.param(OTHERS, ["member_gone c"], id="a commit of the generation before may be another member's"),
        pytest.param(
            [SHARED, *BUSY, commit(1, 3_596), after()],
            ["member_gone c"],
            id="a commit for a partition with two owners may be the other member's",
        ),
        pytest.param(
            [before(leader_epoch=3), *BUSY, commit(2, 3_596), after(leader_epoch=4)],
            ["member_gone c"],
            id="times of two coordinators are not compared",
        ),
        # 26 s are set back at 3,590: a session that ended 48 s after the commit seems to have ended 22 s after it.
        pytest.param(
            [
                *(before(), *BUSY[:2], commit(2, 3_580), round_at(3_585)),
                *(commit(0, 3_592, time=START + 3_566 * SECOND), round_at(3_595), LATE),
            ],
            ["member_gone c"],
            id="a coordinator's clock that goes back proves nothing until the next decision",
        ),
        pytest.param(
            [
                *(before(), *BUSY[:2], commit(2, 3_580), round_at(3_585)),
                *(commit(0, 3_592), round_at(3_595), LATE),
            ],
            ["member_left c"],
            id="one that does not go back does",
        ),
        pytest.param(
            [before(), *BUSY, Compacted(3_595, 3_596), commit(2, 3_597), after()],
            ["member_gone c"],
            id="what compaction has taken out proves nothing",
        ),
        # A generation that compaction took out may have given the partition to another member, which commits.
        pytest.param([LATELY, commit(2, 3_596), after()], ["member_left c"], id="without compaction"),
        pytest.param(
            [LATELY, Compacted(3_550, 3_590), commit(2, 3_596), after()], ["member_gone c"], id="with compaction"
        ),
        # Members that committed nothing although records waited.
        pytest.param([before(), commit(2, 3_495), *IDLE, after()], ["member_silent c"], id="records waited"),
        pytest.param(
            [before(), commit(2, 3_495), *(round_at(at, end=3_495) for at in range(3_500, 3_600, 10)), after()],
            ["member_gone c"],
            id="a member with nothing to read was not silent",
        ),
        # It committed and left at 3,505; another one let the phase last until 3,600.
        pytest.param(
            [before(), round_at(3_490), commit(2, 3_495), round_at(3_500), *waiting(3_510), after()],
            ["member_gone c"],
            id="a member that left a rebalance that took long was not silent",
        ),
        pytest.param(
            [
                *(before(), commit(1, 3_495), commit(2, 3_495), *IDLE, commit(1, 3_597)),
                make_record(GONE, even("x", 3, "a"), generation=2),
            ],
            ["member_left b", "member_silent c"],
            id="each member has a cause of its own",
        ),
    ],
)
def test_how_a_member_went_is_told_as_far_as_commits_and_rounds_prove_it(
    inputs: list[GroupInput], causes: list[str]
) -> None:
    assert [cause for cause in causes_of(*inputs) if cause.startswith("member_")] == causes


@pytest.mark.parametrize(
    ("inputs", "evidence"),
    [
        (
            [*BUSY, commit(2, 3_596)],
            "committed within 4.0 s before the join phase completed, and no rebalance had begun 26.0 s before;",
        ),
        (
            [commit(2, 3_495), *IDLE],
            "nothing for 105.0 s, and was a member while records waited in its partitions for 80.0 s; the session",
        ),
    ],
)
def test_the_evidence_tells_the_times(inputs: list[GroupInput], evidence: str) -> None:
    (found,) = decisions_of(before(), *inputs, after())[-1].causes or ()
    assert evidence in found.evidence
