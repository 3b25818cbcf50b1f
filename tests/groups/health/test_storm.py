"""When a group rebalances far more often than it used to, by its own past."""

from __future__ import annotations

from itertools import accumulate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.groups.health.activity import LEAST, WINDOW_MS, note, storm
from streaming.groups.state import Rebalances

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
START = 1_767_225_600_000


def group(*times: int) -> Rebalances:
    known = Rebalances()
    for time in times:
        note(known, START + time)
    return known


def every(step: int, begin: int, end: int) -> list[int]:
    return list(range(begin, end, step))


def since(known: Rebalances, now: int) -> int | None:
    found = storm(known, START + now)
    return None if found is None else found.since - START


def test_a_storm_says_how_many_rebalances_there_were_and_how_many_are_usual() -> None:
    known = group(0, DAY, *BURST)
    found = storm(known, START + 2 * DAY + LEAST * MINUTE)
    # One two days before and one a day before, by their weights of a quarter and a half.
    assert found.detail == "6 rebalances in the last 10 minutes; usually about 0.7 a day"


BURST = every(MINUTE, 2 * DAY, 2 * DAY + LEAST * MINUTE)
LAST = BURST[-1]

# Times of rebalances, the time of a round, and since when it is a storm; times are in ms after the start.
STORMS: dict[str, tuple[list[int], int, int | None]] = {
    "a burst after quiet days is one since its first rebalance": ([0, DAY, *BURST], LAST, 2 * DAY),
    "until it is over": ([0, DAY, *BURST], 2 * DAY + WINDOW_MS, None),
    "one rebalance less is none": ([0, DAY, *BURST[:-1]], LAST, None),
    "what a group does in its first hour is none": (every(10_000, 0, HOUR), HOUR, None),
    "a storm of a week does not become what is usual": (
        [0, HOUR, DAY, *every(MINUTE, 2 * DAY, 9 * DAY)],
        9 * DAY,
        2 * DAY,
    ),
    "a group that always rebalances every minute has none": (every(MINUTE, 0, 2 * DAY), 2 * DAY - MINUTE, None),
    "a clock that goes back makes none": ([0, DAY, *(2 * DAY - n * HOUR for n in range(LEAST - 1))], 2 * DAY, None),
    "and loses none": ([0, DAY, *(2 * DAY - n for n in range(LEAST))], 2 * DAY, 2 * DAY),
    "records with a time in the future are none today": (
        [0, DAY, *(400 * DAY + n for n in range(LEAST))],
        30 * DAY,
        None,
    ),
    "a time before all times does not make a group old": ([-START - 1, *range(LEAST)], LEAST, None),
    "a clock that is behind by the span does not end one": ([0, DAY, *BURST, LAST - WINDOW_MS], LAST, 2 * DAY),
    "one that is behind by more does": ([0, DAY, *BURST, LAST - WINDOW_MS - 1], LAST, None),
    "a group is old enough after an hour": ([0, *every(MINUTE, HOUR, HOUR + LEAST * MINUTE)], HOUR, HOUR),
    "whenever its first hour began": (
        [-START, *(at - START for at in every(MINUTE, HOUR, HOUR + LEAST * MINUTE))],
        HOUR - START,
        HOUR - START,
    ),
}


@pytest.mark.parametrize("case", STORMS)
def test_a_storm_is_far_more_rebalances_than_an_old_group_is_used_to(case: str) -> None:
    times, now, begun = STORMS[case]
    assert since(group(*times), now) == begun


def test_after_a_storm_the_past_is_what_it_was_before() -> None:
    known = group(*every(HOUR, 0, 2 * DAY), *every(MINUTE, 2 * DAY, 2 * DAY + 2 * HOUR))
    assert since(known, 2 * DAY + 2 * HOUR - 1) == 2 * DAY
    quiet = [*every(HOUR, 2 * DAY + 3 * HOUR, 3 * DAY)]
    for time in quiet:
        note(known, START + time)
    assert since(known, 3 * DAY) is None
    # Its usual rate, one an hour, is not forgotten: nor has the storm added to it.
    for time in every(MINUTE, 3 * DAY, 3 * DAY + LEAST * MINUTE):
        note(known, START + time)
    found = storm(known, START + 3 * DAY + LEAST * MINUTE)
    assert 20 < float(found.detail.split()[-3]) < 28


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), st.integers(-(2**63), 2**63 - 1))
def test_any_times_pass(times: list[int], now: int) -> None:
    known = Rebalances()
    for time in times:
        note(known, time)
    storm(known, now)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(known), type=Rebalances) == known


TIMES = st.lists(st.sampled_from([1, 1_000, MINUTE, HOUR, DAY]), min_size=1, max_size=200)


@given(TIMES)
def test_the_state_stays_small_and_survives_packing(steps: list[int]) -> None:
    known = Rebalances()
    for number, at in enumerate(accumulate(steps)):
        note(known, START + at)
        if number % 7 == 0:
            known = msgspec.msgpack.decode(msgspec.msgpack.encode(known), type=Rebalances)
    assert len(msgspec.msgpack.encode(known)) < 700
    assert known == group(*accumulate(steps))


def test_a_storm_counts_up_to_64_rebalances_and_says_where_there_may_be_more() -> None:
    for number, begins in ((63, "63 rebalances"), (64, "64 or more rebalances"), (90, "64 or more rebalances")):
        known = group(0, DAY, *every(1_000, 2 * DAY, 2 * DAY + number * 1_000))
        found = storm(known, START + 2 * DAY + number * 1_000)
        assert found.detail.startswith(begins)
        assert found.since - START == 2 * DAY


@pytest.mark.parametrize(("past", "is_storm"), [(240, True), (260, False)])
def test_a_storm_is_more_than_five_times_what_is_usual(past: float, is_storm: bool) -> None:
    # In an old group the average of ten minutes is `past` times 600 * ln 2 / 86,400, which is a 207.8th of it: 1.15 for
    # 240, and 1.25 for 260. The group has six rebalances, which is five times 1.2.
    known = Rebalances(START - 365 * DAY, [START + at * MINUTE for at in range(5)], past, START)
    note(known, START + 5 * MINUTE)
    assert (storm(known, START + 5 * MINUTE) is not None) == is_storm
