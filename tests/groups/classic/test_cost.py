"""What a rebalance costs: the time without an owner, between bounds that records, commits and rounds prove."""

from __future__ import annotations

import pytest

from streaming.records import GroupInput
from tests.groups.build import (
    SECOND,
    START,
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


def committed(record: int) -> list[GroupInput]:
    return [make_commits(record, 10, topic="x", partition=p) for p in (0, 1)]


def first_owner(record: int = 5) -> GroupInput:
    return make_record(record, even("x", 2, "a"))


def two_owners(record: int, generation: int = 2) -> GroupInput:
    return make_record(record, even("x", 2, "a", "b"), generation=generation, state_time=START + record * SECOND - 250)


def static(at: int, member_id: str, generation: int) -> GroupInput:
    member = make_member(member_id, ("x",), {"x": (0, 1)}, group_instance_id="i1")
    return make_record(at, (member,), generation=generation)


EAGER = [first_owner(), *committed(8), two_owners(20)]


@pytest.mark.parametrize(
    ("inputs", "revisions"),
    [
        pytest.param(EAGER, [(5, 1), (20, 1, 0.5, None)], id="eager: from the join to the sync at least"),
        # Partition 0 committed at 8 and 23, partition 1 at 8 and 30.
        pytest.param(
            [
                *(*EAGER, make_commits(23, 11, topic="x"), make_observation(24)),
                *(make_commits(30, 11, 12, topic="x", partition=1), make_observation(40)),
            ],
            [(5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 37.0)],
            id="bounded once every partition has committed again",
        ),
        # Partition 0 committed at 8 and 23; the decision is at 20.
        pytest.param(
            [
                *(*EAGER, make_commits(23, 11, topic="x")),
                *(make_commit(30, 11, topic="x", partition=1, time=START + 8 * SECOND), make_observation(40)),
            ],
            [(5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 15.0 + 12.0)],
            id="a commit with a time before the decision was made after it all the same",
        ),
        # Both stopped at 8 at the earliest and began before 24.75, or never; the next pause begins after 20.
        pytest.param(
            [*EAGER, two_owners(25, 3), *committed(30), make_observation(40)],
            [
                *((5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 33.5)),
                *((25, 1, 0.5, None), (25, 2, 0.5, 10.0 * 2)),
            ],
            id="the next decision ends the waiting when its members had joined",
        ),
        pytest.param(
            [*EAGER, make_record(25, generation=3), *committed(30), make_observation(40)],
            [(5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 2 * 16.98), (25, 1)],
            id="a group that became empty ends the waiting",
        ),
        pytest.param(
            [*EAGER, *committed(23), make_tombstone(25)],
            [(5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 30.0)],
            id="told though the group ends before the next round",
        ),
        pytest.param(
            [first_owner(), two_owners(20), *committed(23), make_observation(30)],
            [(5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 36.0)],
            id="without a commit before the bound begins at the decision before",
        ),
        # a: 0 and 1, b: 2 and 3.
        pytest.param(
            [
                make_record(5, even("x", 4, "a", "b")),
                *(make_commits(8, 10, topic="x", partition=0), make_commits(9, 10, topic="x", partition=3)),
                make_record(20, even("x", 4, "b"), generation=2),
                *(make_commits(26, 11, topic="x", partition=1), make_observation(30)),
            ],
            [(5, 1), (20, 1, 0.08, None), (20, 2, 0.08, 2 * (26 - 8.0) + 2 * (26 - 9))],
            id="one commit of an eager member shows that it owns everything it was given",
        ),
        # a was told to give partition 1 up at 20.
        pytest.param(
            [
                *(
                    make_cooperative(5, 1, a=(0, 1)),
                    *committed(8),
                    make_cooperative(20, 2, {"a": (0, 1)}, a=(0,), b=()),
                ),
                make_cooperative(22, 3, {"a": (0,)}, a=(0,), b=(1,)),
                *(make_commits(24, 11, topic="x"), make_commits(25, 11, topic="x", partition=1), make_observation(30)),
            ],
            [(5, 1), (20, 1, 0.0, 0.0), (22, 1, 0.02, None), (22, 2, 0.02, 5.0)],
            id="a cooperative rebalance costs only what moved",
        ),
        pytest.param(
            [make_cooperative(5, 1, a=(0, 1)), make_cooperative(9, 2, {"a": (0, 1)}, a=(0, 1), b=())],
            [(5, 1), (9, 1, 0.0, 0.0)],
            id="a cooperative rebalance that moves nothing costs nothing",
        ),
        pytest.param(
            [
                *(make_cooperative(5, 1, a=(0, 1)), make_cooperative(9, 2, {"a": (0,)}, a=(0, 1))),
                *(make_commits(11, 11, topic="x", partition=1), make_observation(12)),
            ],
            [(5, 1), (9, 1, 0.02, None), (9, 2, 0.02, 6.0)],
            id="a cooperative member that reports less than it was given never had it",
        ),
        # Partition 1 moved from a to b: it certainly had no owner between join and sync (20 ms).
        pytest.param(
            [
                *(first_owner(), *committed(8)),
                make_record(20, even("x", 2, "a", "b"), generation=2, protocol="house-blend"),
                *(*committed(23), make_observation(30)),
            ],
            [(5, 1), (20, 1, 0.02, None)],
            id="an unknown strategy has no upper bound",
        ),
        pytest.param(
            [
                static(5, "m", 1),
                *committed(8),
                static(20, "m", 2),
                static(22, "m2", 2),
                *committed(25),
                make_observation(30),
            ],
            [(5, 1), (20, 1, 0.04, None), (22, 1), (20, 2, 0.04, 34.0)],
            id="a static member's return does not end the waiting",
        ),
        pytest.param(
            [*EAGER, *committed(23), two_owners(30, 3), make_tombstone(40), make_observation(50)],
            [(5, 1), (20, 1, 0.5, None), (20, 2, 0.5, 30.0), (30, 1, 0.5, None)],
            id="a group that ended before any round gets no more revisions",
        ),
    ],
)
def test_records_and_commits_bound_the_time_without_an_owner(
    inputs: list[GroupInput], revisions: list[tuple[float | None, ...]]
) -> None:
    rows = churn_of(*inputs)
    found = [(row.unassigned_partition_seconds_min, row.unassigned_partition_seconds_max) for row in rows]
    told = [
        (row.decision, row.revision, *(() if of == (None, None) else of)) for row, of in zip(rows, found, strict=True)
    ]
    assert told == revisions


def rounds(*states: tuple[int, str]) -> list[GroupInput]:
    """Rounds at these log offsets and times, which close half a second later."""
    return [make_observation(at, state=state) for at, state in states]


STABLE, PREPARING = "Stable", "PreparingRebalance"


def bounds_with(*between: GroupInput, members: GroupInput | None = None) -> tuple[float | None, float | None]:
    """Bounds of the rebalance at 60 after one at 5, of two partitions, with a commit of each member at 61."""
    record = members or two_owners(60)
    after = [make_commits(61, 11, topic="x"), make_commits(62, 11, topic="x", partition=1)]
    row = churn_of(first_owner(), *committed(8), *between, record, *after, make_observation(66))[-1]
    assert row.decision == 60
    return row.unassigned_partition_seconds_min, row.unassigned_partition_seconds_max


FAR = [make_observation(at, state=STABLE, time=START + at * SECOND + 10**9, elapsed=at * SECOND) for at in (50, 55)]
GONE = make_record(60, even("x", 2, "b", "c"), generation=2)


@pytest.mark.parametrize(
    ("between", "members", "bounds"),
    [
        # From the opening of the round at 50 to the closing of that at 66. That at 55 may have seen the next decision.
        pytest.param(rounds((50, STABLE), (55, STABLE)), None, (0.5, 2 * 16.5), id="it was still stable"),
        # Partition 0: 8 to 61, partition 1: 8 to 62.
        pytest.param(rounds((55, STABLE)), None, (0.5, 53.0 + 54.0), id="the newest round may be late"),
        # From 40 to 66.5 by the rounds: a comes again, so it is known to have been there at 40.
        pytest.param(
            rounds((40, STABLE), (45, PREPARING), (50, PREPARING), (55, PREPARING)),
            None,
            (0.5, 2 * 26.5),
            id="time in which members may not have joined yet is in the upper bound only",
        ),
        pytest.param(
            rounds((50, STABLE), (55, STABLE)),
            GONE,
            (0.04, 53.0 + 54.0),
            id="a member that is gone may have been gone while the group was stable",
        ),
        pytest.param(
            [make_observation(at, state=STABLE, held_since=START) for at in (50, 55)],
            None,
            (0.5, 53.0 + 54.0),
            id="rounds prove nothing while the log is held back",
        ),
        pytest.param(
            [make_observation(45, state=STABLE, elapsed=45 * SECOND), *FAR],
            None,
            (0.5, 53.0 + 54.0),
            id="nor while a clock is wrong",
        ),
    ],
)
def test_rounds_that_saw_the_coordinators_state_narrow_the_bounds(
    between: list[GroupInput], members: GroupInput | None, bounds: tuple[float | None, float | None]
) -> None:
    assert bounds_with(*between, members=members) == bounds


def test_a_static_member_may_have_been_gone_while_the_group_was_stable() -> None:
    inputs = [static(5, "a", 1), *committed(8), *rounds((50, STABLE), (55, STABLE)), static(60, "a", 2)]
    rows = churn_of(*inputs, *committed(61), make_observation(66))
    assert rows[-1].unassigned_partition_seconds_max == 2 * 53.0


@pytest.mark.parametrize("got", [(), (0,)])
def test_partitions_that_eager_members_give_up_and_nobody_gets_have_no_upper_bounds(got: tuple[int, ...]) -> None:
    members = [make_member("a", ("x",), {"x": got} if got else {}), make_member("b", ("x",))]
    inputs = [first_owner(), *committed(8), make_observation(10, make_topic("x", 2, end=500))]
    inputs += [make_record(20, members, generation=2), *committed(23)]
    row = churn_of(*inputs, make_observation(30, make_topic("x", 2, end=600)))[-1]
    assert (row.decision, row.unassigned_partition_seconds_max) == (20, None)


@pytest.mark.parametrize(
    ("topics", "count", "is_bounded"),
    [(("x",), 1, True), (("x", "y"), 0, True), (("x", "y"), None, True), (("x", "y"), 1, False)],
)
def test_partitions_that_are_gone_or_that_nobody_subscribes_to_any_more_leave_no_bound_open(
    topics: tuple[str, ...], count: int | None, is_bounded: bool
) -> None:
    before = make_record(5, [make_member("a", ("x", "y"), {"x": (0, 1), "y": (0,)})])
    after = make_record(20, even("x", 2, "a", "b", topics=topics), generation=2)
    seen = make_observation(10, make_topic("x", 2, end=500), make_topic("y", count))
    row = churn_of(before, *committed(8), seen, after, *committed(23), make_observation(30))[-1]
    assert (row.decision, row.unassigned_partition_seconds_max is not None) == (20, is_bounded)
