"""The unassigned time of partitions that a broker moves, by hand."""

from __future__ import annotations

import msgspec
import pytest

from streaming.groups.rows import ChurnRow
from streaming.records import (
    SHARE,
    STREAMS,
    Compacted,
    CurrentAssignment,
    GroupEpoch,
    GroupInput,
    ModernMember,
    TargetAssignment,
    TargetEpoch,
)
from tests.groups.build import GROUP, LOG_PARTITION, SECOND, START, Life, churn_of, make_commit
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import FIRST, SECOND_MEMBER, epoch, gone, metadata, observation, owns, read, stands, target
from tests.offsets_log.written import current_assignment, other_key

# The log begins at offset 10: b's two partitions are decided at 19; the times are the offsets in seconds.


def revoking(name: str, keeps: tuple[int, ...], gives: tuple[int, ...]) -> Written:
    return other_key(8, GROUP, name), current_assignment(1, {TOPIC: keeps}, state=1, revoking={TOPIC: gives})


def committed(record: int, *partitions: int) -> list[GroupInput]:
    return [make_commit(record, 50 + record, partition=partition) for partition in partitions]


def bounds(row: ChurnRow) -> tuple[int, float | None, float | None]:
    return row.revision, row.unassigned_partition_seconds_min, row.unassigned_partition_seconds_max


# a has given up both at 30 s; b takes them at 25 s by its broker's clock, and commits at 27 s, before the 28 s at which
# a still had them.
GIVES = [observation(10), *read(FIRST + SECOND_MEMBER), *read([revoking("a", (0, 1), (2, 3))], 28)]
GAVE = read([owns("a", 2, 0, 1)], 30)
TAKES = read([owns("b", 2, 2, 3)], 37)
BACK = [msgspec.structs.replace(item, record_time=START + 25 * SECOND) for item in TAKES]  # type: ignore[type-var]
BACK += [make_commit(40, 90, partition=number, time=START + 27 * SECOND) for number in (2, 3)]
THIRD = [metadata("c"), epoch(3), target("a", 0), target("b", 2), target("c", 1, 3), stands(3)]
THREE = [
    *read([*FIRST, *SECOND_MEMBER, owns("a", 2, 0, 1), *THIRD]),
    *(*read([owns("b", 3, 2)], 30), *read([owns("a", 3, 0)], 31), *read([owns("c", 3, 1, 3)], 40)),
]
SHARED = [*FIRST, *SECOND_MEMBER, owns("a", 2, 0, 1), owns("b", 2, 2, 3)]
LEFT = [*gone("b"), epoch(3), target("a", 0, 1, 2, 3), stands(3)]
BEFORE = [observation(10), *read(FIRST + SECOND_MEMBER), *GAVE]
LATE = read([owns("b", 2, 2, 3)], 1000)


@pytest.mark.parametrize(
    ("inputs", "offset", "rows"),
    [
        pytest.param(
            [*read(FIRST + SECOND_MEMBER), *GAVE, *TAKES],
            *(19, [(1, None, None), (2, 14.0, None)]),
            id="between giving up and taking over nobody owns a partition: both from 30 to 37",
        ),
        pytest.param(
            [
                *(*GIVES, *GAVE, *TAKES, observation(38)),
                *(*committed(40, 2), observation(41), *committed(45, 3), observation(46)),
            ],
            *(19, [(1, None, None), (2, 14.0, None), (3, 14.0, 29.0)]),
            id="from 28, when a still had both, to the first commits after it, at 40 and 45",
        ),
        pytest.param(
            [
                *(observation(10), *read(FIRST), *committed(25, 2, 3), observation(26), *read(SECOND_MEMBER, 27)),
                *(*read([owns("a", 2, 0, 1)], 34), *TAKES, *committed(39, 2, 3), observation(50)),
            ],
            *(31, [(1, None, None), (2, 6.0, None), (3, 6.0, 28.0)]),
            id="where the log does not show the giving up the last commit before it bounds the pause",
        ),
        pytest.param(
            [
                *(observation(10), *read(FIRST + SECOND_MEMBER), *committed(22, 2, 3), observation(23), *GAVE, *TAKES),
                *(observation(38), *committed(40, 2, 3), observation(41)),
            ],
            *(19, [(1, None, None), (2, 14.0, None), (3, 14.0, 36.0)]),
            id="a commit by the first owner after the decision ends no pause: from a's at 22 to b's at 40",
        ),
        pytest.param(
            [*GIVES, *GAVE, *committed(33, 2, 3), observation(34), *TAKES, *committed(40, 2, 3), observation(46)],
            *(19, [(1, None, None), (2, 14.0, None), (3, 14.0, 24.0)]),
            id="nor does one between giving up and taking over: from 28 to 40, and not to 33",
        ),
        pytest.param(
            [*BEFORE, *TAKES, observation(38), *committed(40, 2, 3), observation(41)],
            *(19, [(1, None, None), (2, 14.0, None)]),
            id="without a commit before there is no upper bound",
        ),
        # b's tombstone at 22 (type 8), the decision at 27, and a owns all at 29: two partitions, seven seconds each.
        pytest.param(
            [*read(SHARED), *read(LEFT, 22), *read([owns("a", 3, 0, 1, 2, 3)], 29)],
            *(27, [(1, None, None), (2, 14.0, None)]),
            id="a member that left has left its partitions before the decision",
        ),
        pytest.param(
            read([*FIRST, metadata("b"), epoch(2), target("b"), stands(2)]),
            *(18, [(1, 0.0, 0.0)]),
            id="a decision that moves nothing costs nothing",
        ),
        pytest.param(
            [*GIVES, *GAVE, *BACK, observation(46)],
            *(19, [(1, None, None), (2, 0.0, None), (3, 0.0, 0.0)]),
            id="where a clock goes back nothing had no owner for less than no time",
        ),
        pytest.param(
            [observation(10), *read([*FIRST, *gone("a"), epoch(2)]), *committed(30, 2, 3), observation(40)],
            *(18, [(1, None, None)]),
            id="a decision that empties the group gives no partition to anybody and has no bounds",
        ),
        # b joins and leaves while a is giving up 2 and 3: a must finish that before it can keep them.
        pytest.param(
            [
                *(observation(10), *read(FIRST + SECOND_MEMBER), *committed(21, 2, 3), *GIVES[-1:]),
                *(*read([*LEFT, owns("a", 3, 0, 1, 2, 3)], 30), *committed(70, 2, 3), observation(80)),
            ],
            *(35, [(1, None, None)]),
            id="what a member is giving up when it gets it back has a pause that nothing bounds",
        ),
        pytest.param(THREE, 19, [(1, None, None)], id="the next decision ends the waiting"),
        # 2 and 3 were given up at 20, and taken at 30 and 40; 1 was given up at 31, and taken at 40.
        pytest.param(THREE, 26, [(1, None, None), (2, 39.0, None)], id="and takes over what is still on its way"),
        pytest.param(
            [*read(FIRST[3:]), *read(SECOND_MEMBER, 15), *read([owns("a", 2, 0, 1), owns("b", 2, 2, 3)], 30)],
            *(19, [(1, None, None)]),
            id="a group met in the middle of its life has no cost until its second decision",
        ),
        # b got 2 at 37, in a record that compaction replaced by the one at 1000: that time would be too long for 2.
        pytest.param(
            [*BEFORE, *read([owns("b", 2, 2)], 37), *LATE],
            *(19, [(1, None, None), (2, 977.0, None)]),
            id="without compaction",
        ),
        pytest.param(
            [*BEFORE, Compacted(37, 1001), *LATE, *committed(1010, 2, 3), observation(1020)],
            *(19, [(1, None, None)]),
            id="a compacted stretch ends the waiting",
        ),
        pytest.param(
            [
                *read(FIRST + SECOND_MEMBER),
                *read([*gone("a", "b"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)], 20),
            ],
            *(19, [(1, None, None)]),
            id="the end of the group ends the waiting",
        ),
    ],
)
def test_what_members_own_and_commit_bounds_the_time_without_an_owner(
    inputs: list[GroupInput], offset: int, rows: list[tuple[int, float | None, float | None]]
) -> None:
    assert [bounds(row) for row in churn_of(*inputs) if row.decision == offset] == rows


def test_a_decision_whose_bounds_are_known_gets_no_more_rows() -> None:
    inputs = [observation(10), *read(FIRST + SECOND_MEMBER), *read([revoking("a", (0, 1), (2, 3))], 28)]
    inputs += [*read([owns("a", 2, 0, 1)], 30), *read([owns("b", 2, 2, 3)], 37), observation(38)]
    life = Life.after(*inputs, *committed(40, 2, 3), observation(41))
    assert [row.revision for row in life.rows.rebalance_churn if row.decision == 19] == [1, 2, 3]
    for second in (50, 60):
        assert life.take(*committed(second, 2, 3), observation(second + 1)).rebalance_churn == []


@pytest.mark.parametrize("group_type", [SHARE, STREAMS])
def test_share_and_streams_groups_have_no_cost(group_type: str) -> None:
    at = [(offset, START + offset * SECOND, group_type, LOG_PARTITION) for offset in range(10, 18)]
    tasks = (("x", (0, 1)),)
    life = Life.after(
        ModernMember(*at[0], "a", None, None, "client", "/10.0.0.1", ()),
        GroupEpoch(*at[1], 1),
        TargetAssignment(*at[2], "a", tasks),
        TargetEpoch(*at[3], 1),
        CurrentAssignment(*at[4], "a", 1, 0, 0, tasks),
        GroupEpoch(*at[5], 2),
        TargetEpoch(*at[6], 2),
        observation(20),
    )
    assert [bounds(row) for row in life.rows.rebalance_churn] == [(1, None, None)] * 2
    assert life.state.modern.cost is None


def test_times_are_those_of_the_records() -> None:
    # The other tests count offsets as seconds; this one verifies that an offset is a second.
    assert [item.record_time for item in read(FIRST)][:2] == [START + 10 * SECOND, START + 11 * SECOND]  # type: ignore[union-attr]
