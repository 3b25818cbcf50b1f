"""What stands in a group's state moves with a broker's clock that was wrong."""

from __future__ import annotations

from streaming.groups.advance import _take_time as take_time
from streaming.groups.state import GroupState
from tests.groups.build import SECOND, START, Life, even, make_commit, make_observation, make_record, make_topic

HOUR = 3_600 * SECOND


def test_a_gap_counts_for_three_usual_steps_and_the_rest_of_an_idle_group_is_none() -> None:
    state = GroupState()

    def passed(second: int, *, idle: bool = False) -> tuple[int, int]:
        elapsed, rounds = take_time(state, make_observation(second, elapsed=second * SECOND, idle=idle))
        return elapsed // SECOND, rounds

    assert [passed(second) for second in (10, 20, 30)] == [(0, 1), (10, 1), (10, 1)]
    assert passed(130) == (30, 1)  # a gap of a hundred seconds, of steps of ten
    assert [passed(140), passed(150, idle=True)] == [(10, 1), (10, 10)]
    assert passed(750) == (600, 1)  # it rested
    assert passed(850) == (30, 1)  # and its step is ten seconds as before


def deletions(life: Life) -> list[int]:
    """Since when the newest row says that offsets were deleted, in seconds."""
    return [
        (found.since - START) // SECOND
        for found in life.rows.group_health[-1].findings
        if found.finding == "offset_deleted"
    ]


def test_a_deletion_is_shown_for_ten_minutes_also_where_the_clock_turns_out_to_have_been_an_hour_ahead() -> None:
    life = Life()
    life.take(make_record(5, even("x", 1, "a")), make_commit(6, 7, topic="x"))

    def take(second: int, *, ahead: int = 0) -> None:
        elapsed, time = second * SECOND, START + second * SECOND + ahead
        life.take(make_observation(second, make_topic("x", 1), time=time, elapsed=elapsed))

    take(10, ahead=HOUR)
    life.take(make_commit(12, None, topic="x"))
    take(20, ahead=HOUR)
    assert deletions(life) == [3_620]
    for second in (30, 40, 619):
        take(second)
    assert deletions(life) == [20]
    take(620)
    assert deletions(life) == []


def test_after_an_hour_without_rounds_what_was_seen_before_it_keeps_its_time() -> None:
    life = Life()
    life.take(make_record(5, even("x", 1, "a")))
    for second, later, partitions in ((10, 0, 1), (20, 0, 1), (30, HOUR, 2), (40, HOUR, 2)):
        time = START + second * SECOND + later
        life.take(make_observation(second, make_topic("x", partitions), time=time, elapsed=second * SECOND))
    assert life.state is not None
    topic = life.state.topics["x"]
    assert topic.since == START + 10 * SECOND
    assert [(seen.count, seen.first - START, seen.last - START) for seen in topic.counts] == [
        (1, 10 * SECOND, 20 * SECOND),
        (2, 30 * SECOND + HOUR, 40 * SECOND + HOUR),
    ]
