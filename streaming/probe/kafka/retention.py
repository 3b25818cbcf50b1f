"""How long brokers keep offsets, and topics their records: whom to ask, once per heartbeat, and what they answered.

Settings change rarely and need a right of their own (DescribeConfigs), which may be missing. So no round waits for
them, and a few topics are asked in each. None of this outlives the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

TOPICS_A_ROUND: Final = 1_000
"""A cluster of ten thousand topics is known after ten rounds, and no round asks for more than some 100 KB."""

_AGAIN_S: Final = 60.0
"""Until topics are asked again that got no answer."""

_KEPT_PERIODS: Final = 3
"""An answer that could not be renewed for so long is not believed any more."""


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
        self._due: dict[RetentionKey, float] = {}
        self._known: dict[RetentionKey, tuple[float, _V]] = {}

    def due(self, keys: Collection[RetentionKey]) -> list[RetentionKey]:
        """Those to ask now; those that were never asked come first."""
        now = self._clock()
        waiting = [key for key in keys if self._due.get(key, 0.0) <= now]
        if len(self._due) > 2 * len(keys):
            self._due = {key: due for key, due in self._due.items() if key in keys}
            self._known = {key: known for key, known in self._known.items() if key in keys}
        return sorted(waiting, key=lambda key: self._due.get(key, 0.0))[:TOPICS_A_ROUND]

    def note_answers(self, answers: Mapping[RetentionKey, _V | None]) -> None:
        """Take in answers: None where settings may not be seen."""
        now = self._clock()
        for key, answer in answers.items():
            self._due[key] = now + self._period
            self._known.pop(key, None)
            if answer is not None:
                self._known[key] = (now, answer)

    def postpone(self, keys: Iterable[RetentionKey]) -> None:
        """Ask those that gave no answer again in a while; their last one holds for `_KEPT_PERIODS`."""
        again = self._clock() + min(_AGAIN_S, self._period)
        self._due.update(dict.fromkeys(keys, again))

    def of(self, key: RetentionKey) -> _V | None:
        """The answer; None if it is not known, or too old."""
        known = self._known.get(key)
        if known is None or self._clock() - known[0] > _KEPT_PERIODS * self._period:
            return None
        return known[1]
