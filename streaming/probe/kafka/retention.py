"""How long brokers keep offsets, and topics their records: whom to ask, once per heartbeat, and what they answered.

Settings change rarely and need a right of their own (DescribeConfigs), which may be missing. So no round waits for
them, and a few topics are asked in each. None of this outlives the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

TOPICS_A_ROUND: Final = 1_000
"""A cluster of ten thousand topics is known after ten rounds, and no round asks for more than some 100 KB."""


RetentionKey: TypeAlias = tuple[str, str | None]
"""Name and id of a topic: one that was created again has other settings."""

_V = TypeVar("_V")


class Retentions(Generic[_V]):
    """What topics, or brokers, have answered. Not for several threads."""

    def __init__(self, period_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Know nothing yet.

        Args:
            period_s: Each is asked once within it.
            clock: Steady time, s.
        """
        self._period = period_s
        self._clock = clock
        self._known: dict[RetentionKey, tuple[float, _V | None]] = {}

    def due(self, keys: Collection[RetentionKey]) -> list[RetentionKey]:
        """Those to ask now."""
        if len(self._known) > 2 * len(keys):
            self._known = {key: known for key, known in self._known.items() if key in keys}
        ago = self._clock() - self._period
        return [key for key in keys if key not in self._known or self._known[key][0] <= ago][:TOPICS_A_ROUND]

    def note(self, asked: Collection[RetentionKey], answers: Mapping[RetentionKey, _V | None]) -> None:
        """Take in answers: None where settings may not be seen; the last one holds where there is none."""
        now = self._clock()
        for key in asked:
            self._known[key] = (now, answers.get(key, self.of(key)))

    def of(self, key: RetentionKey) -> _V | None:
        """The answer; None if it is not known."""
        if key in self._known:
            return self._known[key][1]
        return None
