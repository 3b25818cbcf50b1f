"""What stands in a group's state moves with a broker's clock that was wrong."""

from __future__ import annotations

import pytest

from streaming.groups.advance import _advance_clock as advance_clock
from streaming.groups.state import GroupState
from streaming.records import GroupInput, GroupObservation
from tests.groups.build import (
    SECOND,
    START,
    Life,
    counted,
    even,
    make_commit,
    make_observation,
    make_record,
    make_topic,
    rows_in_batches,
)
from tests.groups.health.findings import found
from tests.groups.modern_log import FIRST, TOPIC_ID, read

HOUR = 3_600 * SECOND

GRACE_S = 600


def test_a_gap_counts_for_three_usual_steps_and_the_rest_of_an_idle_group_for_all_its_rounds() -> None:
    state = GroupState()

    def passed(second: int, *, idle: bool = False) -> tuple[int, int]:
        elapsed, rounds = advance_clock(state, make_observation(second, elapsed=second * SECOND, idle=idle))
        return elapsed // SECOND, rounds

    assert [passed(second) for second in (10, 20, 30)] == [(0, 1), (10, 1), (10, 1)]
    assert passed(130) == (30, 1)  # a gap of a hundred seconds, of steps of ten
    assert [passed(140), passed(150, idle=True)] == [(10, 1), (10, 1)]
    assert passed(750) == (600, 60)  # it rested
    assert passed(850) == (30, 1)  # and its step is ten seconds as before


def test_after_an_hour_without_rounds_what_was_seen_before_it_keeps_its_time() -> None:
    life = Life.after(make_record(5, even("x", 1, "a")))
    for second, later, partitions in ((10, 0, 1), (20, 0, 1), (30, HOUR, 2), (40, HOUR, 2)):
        time = START + second * SECOND + later
        life.take(make_observation(second, make_topic("x", partitions), time=time, elapsed=second * SECOND))
    topic = life.state.topics["x"]
    assert topic.since == START + 10 * SECOND
    assert [(seen.count, seen.first - START, seen.last - START) for seen in topic.counts] == [
        (1, 10 * SECOND, 20 * SECOND),
        (2, 30 * SECOND + HOUR, 40 * SECOND + HOUR),
    ]


def timed(second: int, partitions: int, *, ahead: int = 0, end: int = 100, **fields: object) -> GroupObservation:
    """A round of a group that reads `orders`, whose time is so many ms ahead of what has passed."""
    topic = make_topic("orders", partitions, topic_id=TOPIC_ID, end=end)
    time, elapsed = START + second * SECOND + ahead, second * SECOND
    return make_observation(second, topic, time=time, elapsed=elapsed, **fields)


def grown(second: int, *, ahead: int = 0) -> GroupObservation:
    """A round of a group that the broker assigns, whose topic has six partitions instead of the four assigned."""
    return timed(second, 6, ahead=ahead, state=None, group_type="consumer")


def assigned() -> Life:
    return Life.after(*read(FIRST))


def afterwards(life: Life, first: int) -> list[tuple[str, int]]:
    """The findings of the newest row, after making sure that none since this round begins later than its row."""
    for row in life.rows.group_health:
        if row.round >= first:
            assert all(one.since <= row.round_time for one in row.findings), row
    return found(life)


@pytest.mark.parametrize("ahead", [0, 120 * SECOND, HOUR, 6 * HOUR])
def test_partitions_without_an_owner_are_found_after_the_grace_also_where_the_clock_was_ahead(ahead: int) -> None:
    life = assigned()
    life.take(timed(15, 4, ahead=ahead, state=None, group_type="consumer"))
    life.take(grown(20, ahead=ahead), grown(30, ahead=ahead), grown(40), grown(50), grown(20 + GRACE_S - 1))
    assert afterwards(life, 50) == [("stale_metadata", 20)]
    life.take(grown(20 + GRACE_S))
    assert afterwards(life, 50) == [("unassigned", 20)]


def test_a_clock_that_is_set_right_in_two_steps_leaves_no_finding_that_is_still_to_begin() -> None:
    life = assigned()
    life.take(*(grown(second, ahead=2 * HOUR) for second in (20, 30)), grown(40, ahead=HOUR))
    life.take(*(grown(second) for second in (50, 60, 70, 80)))
    assert afterwards(life, 60) == [("stale_metadata", 20)]


def test_a_deletion_is_shown_for_ten_minutes_also_where_the_clock_turns_out_to_have_been_an_hour_ahead() -> None:
    life = Life.after(make_record(5, even("orders", 1, "a")), make_commit(6, 7), timed(10, 1, ahead=HOUR))
    life.take(make_commit(12, None), timed(20, 1, ahead=HOUR))
    assert found(life) == [("offset_deleted", 3_620)]
    life.take(*(timed(second, 1) for second in (30, 40, 619)))
    assert found(life) == [("offset_deleted", 20)]
    life.take(timed(620, 1))
    assert found(life) == []


@pytest.mark.parametrize(("first", "second"), [(0, 0), (HOUR, HOUR), (-HOUR, 0)], ids=["right", "ahead", "behind"])
def test_that_nothing_was_ever_committed_holds_since_the_round_of_it_whatever_the_clock_said(
    first: int, second: int
) -> None:
    life = Life.after(make_record(5, even("orders", 2, "a", "b")))
    life.take(timed(10, 2, ahead=first), timed(20, 2, ahead=second, end=200))
    life.take(*(timed(at, 2, end=300) for at in (30, 40, 610)))
    assert afterwards(life, 40) == [("never_committed", 10)]


@pytest.mark.parametrize("ahead", [0, HOUR])
def test_a_rewind_keeps_its_time_where_the_clock_turns_out_to_have_been_ahead(ahead: int) -> None:
    life = Life.after(make_record(5, even("orders", 1, "a")), make_commit(6, 90), timed(10, 1, ahead=ahead))
    life.take(make_commit(12, 20), timed(20, 1, ahead=ahead), timed(30, 1), timed(40, 1), timed(50, 1))
    assert afterwards(life, 40) == [("rewound", 20)]


@pytest.mark.parametrize("wrong_once", [0, -START])
def test_a_start_of_a_right_clock_stays_when_one_that_was_ahead_meanwhile_is_set_right(wrong_once: int) -> None:
    life = assigned()
    life.take(timed(15, 4, state=None, group_type="consumer"), grown(20), grown(30))
    life.take(*(grown(second, ahead=HOUR) for second in (40, 50, 60)))
    life.take(grown(70), grown(80, ahead=wrong_once), grown(90), grown(100))
    assert afterwards(life, 90) == [("stale_metadata", 20)]


def test_a_clock_that_falls_back_to_1970_makes_no_rebalance_stuck_and_changes_no_record_time() -> None:
    life = Life.after(make_record(100_005, even("orders", 1, "a", "b")))
    for second, state in ((100_010, "Stable"), (100_020, "PreparingRebalance"), (100_030, "PreparingRebalance")):
        life.take(timed(second, 1, state=state))
    for second in (100_040, 100_050, 100_060):
        life.take(timed(second, 1, ahead=-START - 100_000 * SECOND, state="PreparingRebalance"))
    assert found(life) == [("idle_members", 100_005)]


def test_no_start_is_moved_to_before_all_times() -> None:
    life = assigned()
    life.take(grown(20), grown(30), *(grown(second, ahead=-START - 95 * SECOND) for second in (100, 110)))
    assert found(life) == [("stale_metadata", -START // SECOND)]


def test_a_clock_that_is_set_right_gives_the_same_rows_however_the_stream_was_cut() -> None:
    inputs: list[GroupInput] = list(read(FIRST))
    inputs += [timed(15, 4, ahead=HOUR, state=None, group_type="consumer"), grown(20, ahead=HOUR)]
    inputs += [grown(30, ahead=HOUR), *(grown(second) for second in (40, 50, 60, 20 + GRACE_S))]
    whole = counted(rows_in_batches(inputs))
    for cut in range(1, len(inputs)):
        assert counted(rows_in_batches(inputs, [cut])) == whole
