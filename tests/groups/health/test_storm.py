"""When a group rebalances far more often than it used to, by its own past."""

from __future__ import annotations

from itertools import count

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


def test_a_burst_after_quiet_days_is_a_storm_since_its_first_rebalance_until_it_is_over() -> None:
    known = group(0, DAY, *every(MINUTE, 2 * DAY, 2 * DAY + LEAST * MINUTE))
    found = storm(known, START + 2 * DAY + LEAST * MINUTE)
    assert (found.name, found.since - START) == ("rebalance_storm", 2 * DAY)
    # One two days before and one a day before, by their weights of a quarter and a half.
    assert found.detail == "6 rebalances in the last 10 minutes; usually about 0.7 a day"
    assert since(known, 2 * DAY + WINDOW_MS) is None


def test_one_rebalance_less_is_no_storm() -> None:
    known = group(0, DAY, *every(MINUTE, 2 * DAY, 2 * DAY + (LEAST - 1) * MINUTE))
    assert since(known, 2 * DAY + LEAST * MINUTE) is None


def test_a_group_that_always_rebalances_every_minute_has_no_storm() -> None:
    known = Rebalances()
    for time in every(MINUTE, 0, 2 * DAY):
        note(known, START + time)
        assert since(known, time) is None


def test_what_a_group_does_in_its_first_hour_is_no_storm() -> None:
    known = group(*every(10_000, 0, HOUR))
    assert since(known, HOUR) is None


def test_a_storm_of_a_week_does_not_become_what_is_usual() -> None:
    known = group(0, HOUR, DAY)
    for time in every(MINUTE, 2 * DAY, 9 * DAY):
        note(known, START + time)
    assert since(known, 9 * DAY) == 2 * DAY


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


def test_a_clock_that_goes_back_makes_no_storm_and_loses_none() -> None:
    known = group(0, DAY, *(2 * DAY - number * HOUR for number in range(LEAST - 1)))
    assert since(known, 2 * DAY) is None
    assert group(0, DAY, *(2 * DAY - number for number in range(LEAST))).storm_since == START + 2 * DAY


def test_records_with_a_time_in_the_future_are_no_storm_today() -> None:
    known = group(0, DAY, *(400 * DAY + number for number in range(LEAST)))
    assert since(known, 30 * DAY) is None


def test_a_time_before_all_times_does_not_make_a_group_old() -> None:
    known = Rebalances()
    for time in (-1, *(START + number for number in range(LEAST))):
        note(known, time)
    assert storm(known, START + LEAST) is None


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
    known, clock = Rebalances(), count()
    at = START
    for step in steps:
        at += step
        note(known, at)
        if next(clock) % 7 == 0:
            known = msgspec.msgpack.decode(msgspec.msgpack.encode(known), type=Rebalances)
    assert len(msgspec.msgpack.encode(known)) < 700
    plain = Rebalances()
    at = START
    for step in steps:
        at += step
        note(plain, at)
    assert plain == known


def test_a_storm_counts_up_to_64_rebalances_and_says_where_there_may_be_more() -> None:
    for number, begins in ((63, "63 rebalances"), (64, "64 or more rebalances"), (90, "64 or more rebalances")):
        known = group(0, DAY, *every(1_000, 2 * DAY, 2 * DAY + number * 1_000))
        found = storm(known, START + 2 * DAY + number * 1_000)
        assert found.detail.startswith(begins)
        assert found.since - START == 2 * DAY


def test_a_clock_that_is_behind_by_more_than_the_span_ends_a_storm_and_one_that_is_behind_by_the_span_does_not() -> (
    None
):
    burst = every(MINUTE, 2 * DAY, 2 * DAY + LEAST * MINUTE)
    assert since(group(0, DAY, *burst, burst[-1] - WINDOW_MS), burst[-1]) == 2 * DAY
    assert since(group(0, DAY, *burst, burst[-1] - WINDOW_MS - 1), burst[-1]) is None


def test_a_group_is_old_enough_for_a_storm_after_an_hour_whenever_its_first_hour_began() -> None:
    for begin in (0, START):
        known = Rebalances()
        for time in (0, *every(MINUTE, HOUR, HOUR + LEAST * MINUTE)):
            note(known, begin + time)
        assert known.storm_since == begin + HOUR


@pytest.mark.parametrize(("past", "is_storm"), [(240, True), (260, False)])
def test_a_storm_is_more_than_five_times_what_is_usual(past: float, is_storm: bool) -> None:
    # In an old group the average of ten minutes is `past` times 600 * ln 2 / 86,400, which is a 207.8th of it: 1.15 for
    # 240, and 1.25 for 260. The group has six rebalances, which is five times 1.2.
    known = Rebalances(START - 365 * DAY, [START + at * MINUTE for at in range(5)], past, START)
    note(known, START + 5 * MINUTE)
    assert (storm(known, START + 5 * MINUTE) is not None) == is_storm
