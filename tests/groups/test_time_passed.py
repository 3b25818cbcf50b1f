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


def one(second: int, *, ahead: int = 0, **fields: object) -> GroupObservation:
    return timed(second, 1, ahead=ahead, **fields)


def met(second: int, ahead: int = 0) -> GroupObservation:
    return timed(second, 4, ahead=ahead, state=None, group_type="consumer")


ONE, TWO = make_record(5, even("orders", 1, "a")), make_record(5, even("orders", 2, "a", "b"))
ASSIGNED = read(FIRST)
TO_1970 = -START - 100_000 * SECOND

# Inputs, and the findings of the newest round, each with the second of its beginning.
CLOCKS: dict[str, list[tuple[list[GroupInput], list[tuple[str, int]]]]] = {
    **{
        f"partitions without an owner are found after the grace where the clock was {ahead // SECOND} s ahead": [
            (
                [
                    *(*ASSIGNED, met(15, ahead), grown(20, ahead=ahead), grown(30, ahead=ahead)),
                    *(grown(second) for second in (40, 50, 20 + GRACE_S - 1)),
                ],
                [("stale_metadata", 20)],
            ),
            ([grown(20 + GRACE_S)], [("unassigned", 20)]),
        ]
        for ahead in (0, 120 * SECOND, HOUR, 6 * HOUR)
    },
    "a clock that is set right in two steps leaves no finding that is still to begin": [
        (
            [
                *(*ASSIGNED, grown(20, ahead=2 * HOUR), grown(30, ahead=2 * HOUR), grown(40, ahead=HOUR)),
                *(grown(second) for second in (50, 60, 70, 80)),
            ],
            [("stale_metadata", 20)],
        )
    ],
    "a deletion is shown for ten minutes also where the clock turns out to have been an hour ahead": [
        (
            [ONE, make_commit(6, 7), one(10, ahead=HOUR), make_commit(12, None), one(20, ahead=HOUR)],
            [("offset_deleted", 3_620)],
        ),
        ([one(second) for second in (30, 40, 619)], [("offset_deleted", 20)]),
        ([one(620)], []),
    ],
    **{
        f"that nothing was ever committed holds since the round of it: {first // HOUR} h, then {second // HOUR} h": [
            (
                [
                    *(TWO, timed(10, 2, ahead=first), timed(20, 2, ahead=second, end=200)),
                    *(timed(at, 2, end=300) for at in (30, 40, 610)),
                ],
                [("never_committed", 10)],
            )
        ]
        for first, second in ((0, 0), (HOUR, HOUR), (-HOUR, 0))
    },
    **{
        f"a rewind keeps its time where the clock turns out to have been {ahead // HOUR} h ahead": [
            (
                [
                    *(ONE, make_commit(6, 90), one(10, ahead=ahead), make_commit(12, 20), one(20, ahead=ahead)),
                    *(one(second) for second in (30, 40, 50)),
                ],
                [("rewound", 20)],
            )
        ]
        for ahead in (0, HOUR)
    },
    **{
        f"a start of a right clock stays when one that was ahead meanwhile is set right: {wrong_once}": [
            (
                [
                    *(*ASSIGNED, met(15), grown(20), grown(30)),
                    *(grown(second, ahead=HOUR) for second in (40, 50, 60)),
                    *(grown(70), grown(80, ahead=wrong_once), grown(90), grown(100)),
                ],
                [("stale_metadata", 20)],
            )
        ]
        for wrong_once in (0, -START)
    },
    "a clock that falls back to 1970 makes no rebalance stuck": [
        (
            [
                *(make_record(100_005, even("orders", 1, "a", "b")), one(100_010, state="Stable")),
                *(one(second, state="PreparingRebalance") for second in (100_020, 100_030)),
                *(one(second, ahead=TO_1970, state="PreparingRebalance") for second in (100_040, 100_050, 100_060)),
            ],
            [("idle_members", 100_005)],
        )
    ],
    "no start is moved to before all times": [
        (
            [*ASSIGNED, grown(20), grown(30), *(grown(second, ahead=-START - 95 * SECOND) for second in (100, 110))],
            [("stale_metadata", -START // SECOND)],
        )
    ],
}


@pytest.mark.parametrize("case", CLOCKS)
def test_what_began_moves_with_a_clock_that_is_set_right(case: str) -> None:
    life = Life()
    for inputs, expected in CLOCKS[case]:
        life.take(*inputs)
        assert found(life) == expected
    newest = life.rows.group_health[-1]
    assert all(one.since <= newest.round_time for one in newest.findings)


def test_a_clock_that_is_set_right_gives_the_same_rows_however_the_stream_was_cut() -> None:
    inputs: list[GroupInput] = list(read(FIRST))
    inputs += [timed(15, 4, ahead=HOUR, state=None, group_type="consumer"), grown(20, ahead=HOUR)]
    inputs += [grown(30, ahead=HOUR), *(grown(second) for second in (40, 50, 60, 20 + GRACE_S))]
    whole = counted(rows_in_batches(inputs))
    for cut in range(1, len(inputs)):
        assert counted(rows_in_batches(inputs, [cut])) == whole
