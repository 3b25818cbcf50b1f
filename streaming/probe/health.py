"""What a probe says of itself to its supervisor: whether its loop runs, and whether rounds close."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from streaming.health import Condition
from streaming.records import SILENT_INTERVALS

_STUCK_INTERVALS: Final = 10
_STUCK_LEAST_S: Final = 300.0
"""A round has a deadline of two intervals, reading back its events one of a minute, and a request to a broker may wait
half a minute: a loop that has not come around for so long hangs, and only a restart helps."""

_LATE_LEAST_S: Final = 30.0
"""A broker's restart costs a round or two, whatever the interval."""


class ProbeHealth:
    """Told by the probe's loop, asked by other threads: every change is one assignment."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin: no round has closed yet.

        Args:
            interval_s: The probe's interval.
            clock: Seconds that only grow.
        """
        self._interval_s, self._clock = interval_s, clock
        self._beat_at = clock()
        self._closed_at: float | None = None
        self._stands_by = ""
        self._trouble = ""

    def beat(self) -> None:
        """The loop has come around."""
        self._beat_at = self._clock()

    def closed(self, interval_ms: int) -> None:
        """A round has closed; `interval_ms` is how often they come."""
        self._interval_s = interval_ms / 1000
        self._closed_at, self._stands_by, self._trouble = self._clock(), "", ""
        self.beat()

    def stands_by(self, why: str) -> None:
        """Another probe makes the rounds; `why` names it, without a full stop."""
        self._stands_by, self._closed_at, self._trouble = why, None, ""
        self.beat()

    def failed(self, what: str) -> None:
        """An attempt failed; `what` says of what and why, without a full stop."""
        self._trouble = what
        self.beat()

    def live(self) -> Condition:
        """Whether the loop runs."""
        quiet = self._clock() - self._beat_at
        if quiet > max(_STUCK_LEAST_S, _STUCK_INTERVALS * self._interval_s):
            return Condition(False, (f"The probe's loop has not come around for {quiet:.0f} s.",))
        return Condition(True)

    def ready(self) -> Condition:
        """Whether rounds close: this probe's, or those of another for which it stands by."""
        trouble = (f"{self._trouble}.",) if self._trouble else ()
        if self._stands_by:
            return Condition(not trouble, (f"It stands by: {self._stands_by}.", *trouble))
        if self._closed_at is None:
            return Condition(False, ("No round has closed yet.", *trouble))
        quiet = self._clock() - self._closed_at
        if quiet > max(_LATE_LEAST_S, SILENT_INTERVALS * self._interval_s):
            return Condition(False, (f"No round has closed for {quiet:.0f} s.", *trouble))
        return Condition(True, trouble)
