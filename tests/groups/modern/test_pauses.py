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
from tests.groups.build import GROUP, LOG_PARTITION, SECOND, START, Life, make_commit
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import FIRST, SECOND_MEMBER, epoch, gone, metadata, observation, owns, read, stands, target
from tests.offsets_log.written import current_assignment, other_key

# The log begins at offset 10: b's two partitions are decided at 19; the times are the offsets in seconds.


def revoking(name: str, keeps: tuple[int, ...], gives: tuple[int, ...]) -> Written:
    return other_key(8, GROUP, name), current_assignment(1, {TOPIC: keeps}, state=1, revoking={TOPIC: gives})


def committed(record: int, *partitions: int) -> list[GroupInput]:
    return [make_commit(record, 50 + record, partition=partition) for partition in partitions]


def costs(*inputs: GroupInput, offset: int = 19) -> list[tuple[int, float | None, float | None]]:
    """Revision and bounds of each row of the decision at a log offset."""
    life = Life.after(*inputs)
    return [bounds(row) for row in life.rows.rebalance_churn if row.decision == offset]


def bounds(row: ChurnRow) -> tuple[int, float | None, float | None]:
    return row.revision, row.unassigned_partition_seconds_min, row.unassigned_partition_seconds_max


def test_between_giving_up_and_taking_over_nobody_owns_a_partition() -> None:
    # Both partitions have no owner from 30 to 37.
    inputs = [*read(FIRST + SECOND_MEMBER), *read([owns("a", 2, 0, 1)], 30), *read([owns("b", 2, 2, 3)], 37)]
    assert costs(*inputs) == [(1, None, None), (2, 14.0, None)]


def test_a_member_that_says_what_it_still_has_bounds_the_pause_with_the_first_commit_after_it() -> None:
    inputs = [observation(10), *read(FIRST + SECOND_MEMBER), *read([revoking("a", (0, 1), (2, 3))], 28)]
    inputs += [*read([owns("a", 2, 0, 1)], 30), *read([owns("b", 2, 2, 3)], 37), observation(38)]
    inputs += [*committed(40, 2), observation(41), *committed(45, 3), observation(46)]
    # From 28, when a still had both, to 40 and 45.
    assert costs(*inputs) == [(1, None, None), (2, 14.0, None), (3, 14.0, 29.0)]


def test_a_decision_whose_bounds_are_known_gets_no_more_rows() -> None:
    inputs = [observation(10), *read(FIRST + SECOND_MEMBER), *read([revoking("a", (0, 1), (2, 3))], 28)]
    inputs += [*read([owns("a", 2, 0, 1)], 30), *read([owns("b", 2, 2, 3)], 37), observation(38)]
    life = Life.after(*inputs, *committed(40, 2, 3), observation(41))
    assert [row.revision for row in life.rows.rebalance_churn if row.decision == 19] == [1, 2, 3]
    for second in (50, 60):
        assert life.take(*committed(second, 2, 3), observation(second + 1)).rebalance_churn == []


def test_where_the_log_does_not_show_the_giving_up_the_last_commit_before_it_bounds_the_pause() -> None:
    inputs = [observation(10), *read(FIRST), *committed(25, 2, 3), observation(26), *read(SECOND_MEMBER, 27)]
    inputs += [*read([owns("a", 2, 0, 1)], 34), *read([owns("b", 2, 2, 3)], 37), *committed(39, 2, 3), observation(50)]
    assert costs(*inputs, offset=31) == [(1, None, None), (2, 6.0, None), (3, 6.0, 28.0)]


def test_a_commit_by_the_first_owner_after_the_decision_ends_no_pause() -> None:
    inputs = [observation(10), *read(FIRST + SECOND_MEMBER), *committed(22, 2, 3), observation(23)]
    inputs += [
        *read([owns("a", 2, 0, 1)], 30),
        *read([owns("b", 2, 2, 3)], 37),
        observation(38),
        *committed(40, 2, 3),
        observation(41),
    ]
    # From a's commit at 22 to b's at 40.
    assert costs(*inputs)[-1] == (4, 14.0, 36.0)


def test_a_commit_between_giving_up_and_taking_over_ends_no_pause() -> None:
    inputs = [observation(10), *read(FIRST + SECOND_MEMBER), *read([revoking("a", (0, 1), (2, 3))], 28)]
    inputs += [*read([owns("a", 2, 0, 1)], 30), *committed(33, 2, 3), observation(34)]
    inputs += [*read([owns("b", 2, 2, 3)], 37), *committed(40, 2, 3), observation(46)]
    # From 28, when a still had both, to 40, and not to 33.
    assert costs(*inputs) == [(1, None, None), (2, 14.0, None), (3, 14.0, 24.0)]


def test_without_a_commit_before_there_is_no_upper_bound() -> None:
    inputs = [
        observation(10),
        *read(FIRST + SECOND_MEMBER),
        *read([owns("a", 2, 0, 1)], 30),
        *read([owns("b", 2, 2, 3)], 37),
    ]
    assert costs(*inputs, observation(38), *committed(40, 2, 3), observation(41)) == [(1, None, None), (2, 14.0, None)]


def test_a_member_that_left_has_left_its_partitions_before_the_decision() -> None:
    # b's tombstone at 22 (type 8), the decision at 27, and a owns all at 29: two partitions, seven seconds each.
    start = read([*FIRST, *SECOND_MEMBER, owns("a", 2, 0, 1), owns("b", 2, 2, 3)])
    left = read([*gone("b"), epoch(3), target("a", 0, 1, 2, 3), stands(3)], 22)
    assert costs(*start, *left, *read([owns("a", 3, 0, 1, 2, 3)], 29), offset=27)[-1] == (2, 14.0, None)


def test_a_decision_that_moves_nothing_costs_nothing() -> None:
    log = [*FIRST, metadata("b"), epoch(2), target("b"), stands(2)]
    assert costs(*read(log), offset=18) == [(1, 0.0, 0.0)]
    life = Life.after(*read(log))
    assert [(row.records_delayed_min, row.records_delayed_max) for row in life.rows.rebalance_churn] == [(0, 0), (0, 0)]


def test_where_a_clock_goes_back_nothing_had_no_owner_for_less_than_no_time() -> None:
    # a has given up both at 30 s; b takes them at 25 s by its broker's clock, and commits at 27 s, before the 28 s at
    # which a still had them.
    inputs = [observation(10), *read(FIRST + SECOND_MEMBER), *read([revoking("a", (0, 1), (2, 3))], 28)]
    inputs += read([owns("a", 2, 0, 1)], 30)
    inputs += [
        msgspec.structs.replace(item, record_time=START + 25 * SECOND) for item in read([owns("b", 2, 2, 3)], 37)
    ]  # type: ignore[type-var]
    inputs += [make_commit(40, 90, partition=number, time=START + 27 * SECOND) for number in (2, 3)]
    assert costs(*inputs, observation(46)) == [(1, None, None), (2, 0.0, None), (3, 0.0, 0.0)]


def test_a_decision_that_empties_the_group_gives_no_partition_to_anybody_and_has_no_bounds() -> None:
    inputs = [observation(10), *read([*FIRST, *gone("a"), epoch(2)])]
    assert costs(*inputs, *committed(30, 2, 3), observation(40), offset=18) == [(1, None, None)]


def test_what_a_member_is_giving_up_when_it_gets_it_back_has_a_pause_that_nothing_bounds() -> None:
    # b joins and leaves while a is giving up 2 and 3: a must finish that before it can keep them.
    inputs = [
        observation(10),
        *read(FIRST + SECOND_MEMBER),
        *committed(21, 2, 3),
        *read([revoking("a", (0, 1), (2, 3))], 28),
    ]
    inputs += read([*gone("b"), epoch(3), target("a", 0, 1, 2, 3), stands(3), owns("a", 3, 0, 1, 2, 3)], 30)
    assert costs(*inputs, *committed(70, 2, 3), observation(80), offset=35) == [(1, None, None)]


def test_the_next_decision_ends_the_waiting_and_takes_over_what_is_still_on_its_way() -> None:
    third = [metadata("c"), epoch(3), target("a", 0), target("b", 2), target("c", 1, 3), stands(3)]
    inputs = [*read([*FIRST, *SECOND_MEMBER, owns("a", 2, 0, 1), *third])]
    inputs += [*read([owns("b", 3, 2)], 30), *read([owns("a", 3, 0)], 31), *read([owns("c", 3, 1, 3)], 40)]
    assert costs(*inputs) == [(1, None, None)]
    # 2 and 3 were given up at 20, and taken at 30 and 40; 1 was given up at 31, and taken at 40.
    assert costs(*inputs, offset=26) == [(1, None, None), (2, 39.0, None)]


def test_a_group_met_in_the_middle_of_its_life_has_no_cost_until_its_second_decision() -> None:
    inputs = [*read(FIRST[3:]), *read(SECOND_MEMBER, 15), *read([owns("a", 2, 0, 1), owns("b", 2, 2, 3)], 30)]
    assert costs(*inputs) == [(1, None, None)]


def test_a_compacted_stretch_ends_the_waiting() -> None:
    # b got 2 at 37, in a record that compaction replaced by the one at 1000: that time would be too long for 2.
    before = [observation(10), *read(FIRST + SECOND_MEMBER), *read([owns("a", 2, 0, 1)], 30)]
    after = read([owns("b", 2, 2, 3)], 1000)
    assert costs(*before, *read([owns("b", 2, 2)], 37), *after) == [(1, None, None), (2, 977.0, None)]
    assert costs(*before, Compacted(37, 1001), *after, *committed(1010, 2, 3), observation(1020)) == [(1, None, None)]


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
    assert life.state is not None
    assert life.state.modern.pauses is None


def test_the_end_of_the_group_ends_the_waiting() -> None:
    ends = [*gone("a", "b"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)]
    life = Life.after(*read(FIRST + SECOND_MEMBER), *read(ends, 20))
    assert [row.revision for row in life.rows.rebalance_churn] == [1, 1]


def test_times_are_those_of_the_records() -> None:
    # The other tests count offsets as seconds; this one verifies that an offset is a second.
    assert [item.record_time for item in read(FIRST)][:2] == [START + 10 * SECOND, START + 11 * SECOND]  # type: ignore[union-attr]


def test_partitions_of_topics_that_are_gone_are_forgotten_with_the_next_target() -> None:
    # Each day a topic is created, and the one before is deleted: what a gave up of it is nobody's next.
    life = Life()
    for day in range(1, 21):
        named = f"id-of-day-{day}"
        at = 10 * day
        record = {"record_time": START + at * SECOND, "group_type": "consumer", "log_partition": LOG_PARTITION}
        partitions = ((named, (0, 1)),)
        if day == 1:
            life.take(*read([metadata("a")], 1))
        life.take(
            GroupEpoch(record=at + 1, **record, epoch=day),
            TargetAssignment(record=at + 2, **record, member_id="a", partitions=partitions),
            TargetEpoch(record=at + 3, **record, epoch=day),
            CurrentAssignment(
                record=at + 4,
                **record,
                member_id="a",
                epoch=day,
                previous_epoch=day - 1,
                state=0,
                partitions=partitions,
            ),
            observation(at + 5),
        )
    assert life.state is not None
    assert life.state.modern.pauses is not None
    assert set(life.state.modern.pauses.free) <= {"id-of-day-19"}
