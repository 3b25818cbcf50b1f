"""Lag of a partition, its status, and the sums over a group."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.groups.lag.partitions import Measured, lag_status
from streaming.groups.lag.state import PartitionState, Rhythm, Trend
from streaming.records import GroupInput, TopicObservation
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
from tests.groups.lag.backlog import behind, caught_up, health, seen, told_of


def two(second: int, *ends: int) -> GroupInput:
    return make_observation(second, make_topic("x", 2, end=ends))


def committed(record: int, *offsets: int) -> list[GroupInput]:
    return [make_commit(record + p, offset, topic="x", partition=p) for p, offset in enumerate(offsets)]


KEEPS_UP = [
    one
    for second in range(10, 300, 10)
    for one in (make_commit(second - 1, 10 * second - 5, topic="x"), seen(second, 10 * second))
]
READS_ON = [
    one
    for second in range(10, 300, 10)
    for one in (
        make_commit(second - 1, 10 * second, topic="x", partition=1),
        two(second, 100, 10 * second + 15),
    )
]
Health = tuple[float | None, float | None, str | None, tuple[str, int] | None]

# A group, inputs, how far behind it is after them, and how many rows of its health there are then.
BEHIND: dict[str, tuple[Callable[[], Life], list[tuple[list[GroupInput], Health, int]]]] = {
    "as its oldest unread record": (
        Life,
        [
            ([*committed(5, 100, 100), two(10, 100, 100), two(20, 100, 100)], (0.0, 0.0, None, None), 1),
            # The age is as of the round's opening, and the record may have come since, so the group may keep up.
            ([two(30, 100, 150)], (0.0, 10.0, None, None), 2),
            ([two(40, 150, 200)], (9.5, 20.0, None, ("x", 1)), 3),
            ([make_commit(46, 200, topic="x", partition=1), two(50, 150, 200)], (9.5, 20.0, None, ("x", 0)), 4),
        ],
    ),
    "at a constant distance there is no row for that in each round": (
        Life,
        [
            # One row at the first round, which knows no earlier one, and one at the second.
            (KEEPS_UP, (0.0, 10.0, None, None), 2),
            ([seen(300, 3_000), seen(310, 3_000)], (9.5, 20.0, None, ("x", 0)), 3),
        ],
    ),
    **{
        f"partition {old} is behind since before the rounds, which leaves the upper bound open": (
            Life,
            [
                (
                    [
                        *committed(5, *((90, 100) if old == 0 else (100, 90))),
                        *(two(10, 100, 100), two(20, *((100, 150) if old == 0 else (150, 100)))),
                    ],
                    (9.5, None, "before_rounds", ("x", old)),
                    2,
                )
            ],
        )
        for old in (0, 1)
    },
    "an open upper bound gets no row because another partition reads on": (
        Life,
        [([*committed(5, 90), *READS_ON], (0.0, None, "before_rounds", ("x", 0)), 1)],
    ),
    "while lag is not known it is neither behind nor caught up": (
        caught_up,
        [([seen(30, 150, held_since=START)], (None, None, "lag_unknown", None), 2)],
    ),
    "a backlog of which no time is certain does not keep up": (
        Life,
        [([*committed(5, 0), seen(10, 100_000, closed=-1)], (0.0, None, "uncertain_time", None), 1)],
    ),
}


@pytest.mark.parametrize("case", BEHIND)
def test_a_group_is_as_far_behind_as_its_oldest_unread_record(case: str) -> None:
    start, steps = BEHIND[case]
    life = start()
    for inputs, expected, rows in steps:
        life.take(*inputs)
        assert (health(life), len(life.rows.group_health)) == (expected, rows)


def test_topics_that_the_group_no_longer_subscribes_to_do_not_count() -> None:
    life = behind()
    life.take(make_record(55, [make_member("a", ("y",))]))
    life.take(make_observation(60, make_topic("x", 1, end=250), make_topic("y", 1, end=0)))
    assert health(life)[2:] == ("lag_unknown", None)
    assert told_of(life, "x").oldest_unread_time_max == START + 30 * SECOND + SECOND // 2


def test_sums_beyond_what_a_state_can_hold_are_cut_off() -> None:
    life = Life()
    members = (make_member("a", ("x",), {"x": (0, 1, 2)}),)
    most = 2**63 - 1
    life.take(make_record(5, members), make_observation(10, make_topic("x", 3, end=0)))
    life.take(make_observation(20, make_topic("x", 3, end=most)), make_observation(30, make_topic("x", 3, end=most)))
    life.take(*(make_commit(40 + number, 0, topic="x", partition=number) for number in range(3)))
    life.take(make_observation(50, make_topic("x", 3, end=most)), make_observation(60, make_topic("x", 3, end=most)))
    assert life.rows.group_health[-1].lag_total == most


HOUR = 3_600_000


def status(trend: Trend, *, lag: int = 50, committed: int = 100, pauses: int = 3) -> str:
    """Status of a partition whose rhythm is an hour, if it has had three pauses."""
    rhythm = Rhythm([HOUR, HOUR, HOUR, 2 * HOUR, HOUR, 3 * HOUR], 3 * HOUR, pauses)
    state = PartitionState(committed=committed, rhythm=rhythm, trend=trend)
    return lag_status(state, Measured(committed, committed + lag, committed + lag, 0, None))


@pytest.mark.parametrize(
    ("waited", "rounds", "expected"),
    [
        (HOUR * 24 // 10, 10, "ok"),
        (HOUR * 24 // 10 + 1, 10, "stopped"),
        (HOUR * 24 // 10 + 1, 9, "ok"),
    ],
)
def test_a_group_has_stopped_after_more_than_2_4_times_its_rhythm_and_ten_rounds(
    waited: int, rounds: int, expected: str
) -> None:
    assert status(Trend(waited=waited, rounds=rounds)) == expected


def test_lag_of_one_offset_is_no_trouble() -> None:
    trouble = Trend(waited=100 * HOUR, rounds=10, stood=10)
    assert (status(trouble, lag=1), status(trouble, lag=2)) == ("ok", "stopped")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "falling_behind"),
        ({"run": 9}, "ok"),
        ({"grew": 0b1111}, "ok"),  # in four of nine
        ({"left": 120}, "ok"),  # by 20 in nine steps in which 90 have come: by two rounds' worth
    ],
)
def test_lag_that_grew_in_most_of_ten_rounds_and_by_more_than_two_rounds_worth_falls_behind(
    changes: dict[str, int], expected: str
) -> None:
    values = {"run": 10, "grew": 0b11111, "run_lag": 100, "left": 121, "run_end": 1_000, "end": 1_090}
    assert status(Trend(**(values | changes))) == expected


@pytest.mark.parametrize(
    ("committed", "end", "stable", "start", "lag", "read_committed", "ahead_by"),
    [
        (3, 10, 8, 0, 7, 5, 0),
        (0, 5, 0, 0, 5, 0, 0),  # an open transaction from the first record on
        (3, 10, -1, 0, 7, None, 0),
        (3, 10, 8, 6, 4, 2, 0),  # the records below 6 are gone
        (9, 10, 8, 0, 1, 0, 0),
        (12, 10, 10, 0, 0, 0, 2),
    ],
)
def test_lag_is_what_can_be_read_between_the_commit_or_the_log_start_and_the_end(
    committed: int, end: int, stable: int, start: int, lag: int, read_committed: int | None, ahead_by: int
) -> None:
    found = Measured(committed, end, stable, start, None)
    assert (found.lag, found.lag_read_committed, found.ahead_by) == (lag, read_committed, ahead_by)
    assert (found.end, found.stable, found.start) == (end, None if stable < 0 else stable, start)


@pytest.mark.parametrize(
    ("start", "start_before", "lost"),
    [(3, 3, 0), (2, 0, 0), (8, 8, 5), (8, 4, 0), (8, 5, 2), (8, -1, None), (-1, 3, None)],
)
def test_what_is_lost_lies_below_the_log_start_of_the_round_before(
    start: int, start_before: int, lost: int | None
) -> None:
    # One offset, as from 3 to 4, may be a transaction's marker.
    assert Measured(3, 10, 10, start, None, start_before).lost == lost


@pytest.mark.parametrize("unseen", [(), (make_topic("y", None),), (make_topic("y", 0),)])
def test_a_subscribed_topic_without_partitions_has_no_rows(unseen: tuple[TopicObservation, ...]) -> None:
    life = Life()
    rows = life.take(
        make_record(5, even("x", 2, "a", topics=("x", "y"))), make_observation(10, make_topic("x", 2), *unseen)
    )
    assert [(row.topic, row.partition) for row in rows.lag] == [("x", 0), ("x", 1)]
