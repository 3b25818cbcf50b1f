"""How often rounds come: every interval, or every few intervals where a round takes that long. Pure.

A round takes the time that it needs: on a cluster of 100,000 groups some minutes. So the interval that a probe writes
into its records stretches with its rounds, and everything that judges silence, gaps or another probe by that interval
waits as long.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from streaming.records import LONGEST_INTERVAL_MS

LATE_INTERVALS: Final = 2
"""A round may take so many intervals before they stretch. Silence begins with three, so up to here nobody notices; with
one, each garbage collection would stretch them."""

ROUNDS_KEPT: Final = 3
"""The slowest of the last rounds counts. With one, rounds of 19 and 21 s by turns would stretch and shrink the interval
all the time; with many, one slow round would hide a silence for long."""


class RoundInterval:
    """The interval that a probe tells. Call `took` once for each round of its own, `told` for each of another probe."""

    def __init__(self, interval_ms: int) -> None:
        """Begin with the configured interval."""
        self._configured = interval_ms
        self._took: deque[int] = deque(maxlen=ROUNDS_KEPT)
        self._told = 0
        self._said = False

    @property
    def interval_ms(self) -> int:
        """From one round to the next: the configured interval, or as many of them as the slowest of the last rounds."""
        longest = max(self._took, default=0)
        whole = -(-longest // self._configured) * self._configured
        return max(self._configured, whole if self._is_late(longest) else 0, self._told)

    def took(self, needed_ms: int) -> None:
        """Take how long a round of this probe needed, as it closes."""
        self._took.append(needed_ms)
        self._told = 0

    def told(self, interval_ms: int) -> None:
        """Take the interval of another probe: rounds of this one would take as long. A made-up one counts as 10 min."""
        self._told = min(interval_ms, LONGEST_INTERVAL_MS) if self._is_late(interval_ms) else 0

    def news(self) -> str | None:
        """A sentence after the round with which the intervals stretch, and one after they are as configured again."""
        stretched = bool(self._took) and self.interval_ms > self._configured
        if stretched is self._said:
            return None
        self._said = stretched
        every = f"every {self._configured / 1000:g} s"
        if not stretched:
            return f"Rounds come {every} again."
        return (
            f"A round took {max(self._took) / 1000:.1f} s: they come every {self.interval_ms / 1000:g} s, not {every}, "
            "and silence is judged by that. Raise probe.interval_ms, or watch fewer groups."
        )

    def _is_late(self, ms: int) -> bool:
        return ms > LATE_INTERVALS * self._configured
