"""When a job has time for maintenance: between two batches, and never in a catch-up."""

from __future__ import annotations

from dataclasses import dataclass

# A job whose batches take more of the time than this is catching up, or has too little of the machine.
_BUSY = 0.7


@dataclass(frozen=True, slots=True)
class Gap:
    """The time between two batches.

    Attributes:
        left: Seconds until the next batch is expected.
        whole: Seconds from the end of the last batch until then.
    """

    left: float
    whole: float


class Pace:
    """The rhythm of a job's batches. All times are seconds of one clock that only grows.

    The batches come from one thread and the questions from another: each call reads or replaces one tuple.
    """

    def __init__(self) -> None:
        # When the last two batches began, and when the last one ended (None while it is at work).
        self._last: tuple[float | None, float | None, float | None] = (None, None, None)

    def began(self, now: float) -> None:
        """A batch begins."""
        self._last = (self._last[1], now, None)

    def ended(self, now: float) -> None:
        """The batch is written."""
        self._last = (*self._last[:2], now)

    def gap(self, now: float) -> Gap | None:
        """The gap that `now` is in; None in a batch, in a catch-up, and until there were two batches.

        A late batch may come at any moment, so there is no gap either. When it is late by as much as two batches are
        apart, nothing comes (the probe is down, or the cluster), and that much time is a gap again.
        """
        before, began, ended = self._last
        if before is None or began is None or ended is None:
            return None
        period = began - before
        if ended - began > _BUSY * period:
            return None
        left = began + period - now
        if left > 0:
            return Gap(left, began + period - ended)
        return Gap(period, period) if -left > period else None
