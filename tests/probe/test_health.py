"""What a probe says of itself: live while its loop runs, ready while rounds close, by whichever probe."""

from __future__ import annotations

import pytest

from streaming.health import Condition
from streaming.probe.run import ProbeHealth

INTERVAL_S = 10.0
ANOTHER = "probe a-1 makes the rounds of cluster 'c'"


class Clock:
    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> ProbeHealth:
    return ProbeHealth(INTERVAL_S, clock)


def test_before_its_first_round_it_is_live_and_not_ready_and_says_what_fails(health: ProbeHealth) -> None:
    assert health.live() == Condition(True)
    assert health.ready() == Condition(False, ("No round has closed yet.",))
    health.failed("No round closes: the cluster did not answer (NoBrokersAvailable)")
    reasons = ("No round has closed yet.", "No round closes: the cluster did not answer (NoBrokersAvailable).")
    assert health.ready() == Condition(False, reasons)
    assert health.live() == Condition(True)


def test_it_is_ready_until_no_round_has_closed_for_three_intervals(health: ProbeHealth, clock: Clock) -> None:
    health.closed(10_000)
    assert health.ready() == Condition(True)
    clock.s += 30
    assert health.ready().holds
    clock.s += 1
    assert health.ready() == Condition(False, ("No round has closed for 31 s.",))


def test_rounds_that_take_longer_than_the_setting_are_waited_for(health: ProbeHealth, clock: Clock) -> None:
    health.closed(60_000)
    clock.s += 179
    assert health.ready() == Condition(True)


def test_a_failed_attempt_is_a_reason_at_once_and_over_when_a_round_closes(health: ProbeHealth) -> None:
    health.closed(10_000)
    health.failed("No round closes: the bus did not answer")
    assert health.ready() == Condition(True, ("No round closes: the bus did not answer.",))
    health.closed(10_000)
    assert health.ready() == Condition(True)


def test_standing_by_is_ready_while_the_other_ones_rounds_are_seen(health: ProbeHealth, clock: Clock) -> None:
    health.stands_by(ANOTHER)
    clock.s += 3_600
    assert health.ready() == Condition(True, (f"It stands by: {ANOTHER}.",))
    health.failed("The other probe's rounds cannot be followed: no answer")
    assert not health.ready().holds
    health.stands_by(ANOTHER)
    assert health.ready().holds
    health.closed(10_000)
    assert health.ready() == Condition(True)


def test_a_loop_that_does_not_come_around_asks_for_a_restart(health: ProbeHealth, clock: Clock) -> None:
    clock.s += 300
    assert health.live().holds
    clock.s += 1
    assert health.live() == Condition(False, ("The probe's loop has not come around for 301 s.",))
    health.failed("No round closes: the cluster did not answer")
    assert health.live().holds
