"""A round's deadline: how long it may still take, and waits that end early when the probe is to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from streaming.probe.exceptions import RoundAbandonedError, StopRequestedError

# Too short for anybody to notice at a stop, long enough to cost nothing.
_SLICE_S = 0.2


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a round is given up.

    Attributes:
        at: On the monotonic clock, in seconds.
        seconds: How long the whole round was allowed to take; for the message.
        stop: Set when the probe is to stop.
    """

    at: float
    seconds: float
    stop: threading.Event

    @classmethod
    def after(cls, seconds: float, stop: threading.Event | None = None) -> Deadline:
        """A deadline that many seconds from now."""
        return cls(time.monotonic() + seconds, seconds, stop or threading.Event())

    def at_most(self, seconds: float) -> Deadline:
        """This deadline, or one that many seconds from now where that is earlier."""
        at = time.monotonic() + seconds
        return self if self.at <= at else Deadline(at, seconds, self.stop)

    def remaining(self) -> float:
        """Seconds left.

        Raises:
            RoundAbandonedError: There are none.
            StopRequestedError: The probe is to stop.
        """
        if self.stop.is_set():
            message = "the probe was asked to stop"
            raise StopRequestedError(message)
        left = self.at - time.monotonic()
        if left <= 0:
            message = f"it took longer than {self.seconds:.0f} s"
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
