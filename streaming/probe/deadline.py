"""How long a round waits for an answer, and the failures that end it early.

A failure that may be gone by the next round (`RoundAbandonedError`) is kept apart from one that a person must fix
(`SetupError`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streaming.exceptions import EvenkeelError
from streaming.terminal import visible


class RoundAbandonedError(EvenkeelError):
    """This round cannot be completed: it gets no closing record, and the next one starts from scratch."""


class AnotherProbeError(EvenkeelError):
    """Another probe makes the rounds of the cluster: this one stands by."""


class StopRequestedError(EvenkeelError):
    """The probe was asked to stop while it waited; its round is abandoned."""


def error_text(error: Exception) -> str:
    """An error as a readable text: its class once, and its message (`str` repeats the class for kafka-python's)."""
    message = visible(" ".join(str(argument) for argument in error.args if argument))
    if message:
        return f"{type(error).__name__}: {message}"
    return type(error).__name__


# Too short for anybody to notice at a stop, long enough to cost nothing.
_SLICE_S = 0.2


@dataclass(slots=True)
class Deadline:
    """When a round is given up: when no answer has come for `seconds`.

    A round takes the time that it needs: it goes on as long as servers answer. Call `begin` before each question, so
    that our own work in between does not count, and `answered` with each answer.

    Attributes:
        at: On the clock, in seconds.
        seconds: The longest wait for an answer.
        stop: Set when the probe is to stop.
        clock: Seconds that only grow.
        goes_on: False where everything together must be answered by `at`.
    """

    at: float
    seconds: float
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    goes_on: bool = True

    @classmethod
    def after(
        cls, seconds: float, stop: threading.Event | None = None, clock: Callable[[], float] = time.monotonic
    ) -> Deadline:
        """A deadline that many seconds from now."""
        return cls(clock() + seconds, seconds, stop or threading.Event(), clock)

    def begin(self) -> None:
        """Wait for the next answer from now on."""
        if self.goes_on:
            self.at = self.clock() + self.seconds

    def answered(self) -> None:
        """Wait for the next answer, unless this one came too late: this machine may have slept for an hour.

        Raises:
            RoundAbandonedError, StopRequestedError: As `remaining`.
        """
        self.remaining()
        self.begin()

    def at_most(self, seconds: float) -> Deadline:
        """For questions that the round can do without: for all of them together that many seconds from now."""
        return replace(self, at=self.clock() + seconds, seconds=seconds, goes_on=False)

    def remaining(self) -> float:
        """Seconds left.

        Raises:
            RoundAbandonedError: There are none.
            StopRequestedError: The probe is to stop.
        """
        if self.stop.is_set():
            message = "the probe was asked to stop"
            raise StopRequestedError(message)
        left = self.at - self.clock()
        if left <= 0:
            message = f"no answer came within {self.seconds:.0f} s"
            raise RoundAbandonedError(message)
        return left

    def wait(self, done: Callable[[float], bool]) -> None:
        """Call `done(seconds)`, which waits at most that long, until it returns True.

        Raises:
            RoundAbandonedError: The time is over.
            StopRequestedError: The probe is to stop.
        """
        while not done(min(_SLICE_S, self.remaining())):
            pass
