from __future__ import annotations

import threading

import pytest

from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import RoundAbandonedError, StopRequestedError


class Clock:
    """Seconds that a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_round_goes_on_for_as_long_as_answers_come() -> None:
    clock = Clock()
    deadline = Deadline.after(20, clock=clock)
    for _ in range(1_000):
        clock.now += 19.9
        deadline.answered()


def test_a_round_is_given_up_when_no_answer_comes() -> None:
    clock = Clock()
    deadline = Deadline.after(20, clock=clock)
    clock.now += 19.0
    deadline.answered()
    clock.now += 20.0
    with pytest.raises(RoundAbandonedError, match="no answer came within 20 s"):
        deadline.remaining()


def test_an_answer_that_comes_after_an_hour_of_sleep_is_too_late() -> None:
    clock = Clock()
    deadline = Deadline.after(20, clock=clock)
    clock.now += 3_600.0
    with pytest.raises(RoundAbandonedError):
        deadline.answered()


def test_our_own_work_before_a_question_does_not_count() -> None:
    clock = Clock()
    deadline = Deadline.after(20, clock=clock)
    clock.now += 60.0
    deadline.begin()
    assert deadline.remaining() == 20.0


def test_what_a_round_can_do_without_gets_no_more_time_however_many_answers_come() -> None:
    clock = Clock()
    brief = Deadline.after(20, clock=clock).at_most(2)
    for _ in range(3):
        clock.now += 0.6
        brief.answered()
    assert brief.remaining() == pytest.approx(0.2)
    clock.now += 0.3
    with pytest.raises(RoundAbandonedError, match="within 2 s"):
        brief.remaining()


def test_a_stop_ends_every_wait() -> None:
    stop = threading.Event()
    brief = Deadline.after(20, stop).at_most(2)
    stop.set()
    with pytest.raises(StopRequestedError):
        brief.wait(lambda _: False)
