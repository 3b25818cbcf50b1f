"""How long brokers keep the offsets of a group without members, as they last said: once per heartbeat is enough.

The setting needs the right DescribeConfigs on the cluster, which may be missing. Nothing of this outlives the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_AGAIN_S: Final = 60.0
"""Until brokers are asked again that gave no answer."""

_KEPT_PERIODS: Final = 3
"""An answer that could not be renewed for so long is not believed any more."""


class OffsetsRetention:
    """What the brokers have answered. Not for several threads."""

    def __init__(self, period_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Know nothing yet.

        Args:
            period_s: Brokers are asked once within it.
            clock: Steady time, s.
        """
        self._period = period_s
        self._clock = clock
        self._due = clock()
        self._known: tuple[float, int | None] = (self._due, None)

    @property
    def is_due(self) -> bool:
        """Whether to ask now."""
        return self._clock() >= self._due

    def take(self, minutes: int | None) -> None:
        """Take in `offsets.retention.minutes`; None where it may not be seen, or brokers differ."""
        now = self._clock()
        self._due = now + self._period
        self._known = (now, minutes)

    def postpone(self) -> None:
        """Ask again in a while; what was answered before holds for `_KEPT_PERIODS`."""
        self._due = self._clock() + min(_AGAIN_S, self._period)

    @property
    def minutes(self) -> int | None:
        """What the brokers have answered; None if that is not known, or too old."""
        at, minutes = self._known
        return None if self._clock() - at > _KEPT_PERIODS * self._period else minutes
