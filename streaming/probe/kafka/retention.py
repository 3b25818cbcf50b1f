"""How long brokers keep offsets, and topics their records: whom to ask, once per heartbeat, and what they answered.

Settings change rarely and need a right of their own (DescribeConfigs), which may be missing. So no round waits for
them, and a few topics are asked in each. None of this outlives the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from streaming.records import TopicRetention

TOPICS_A_ROUND: Final = 1_000
"""A cluster of ten thousand topics is known after ten rounds, and no round asks for more than some 100 KB."""

_AGAIN_S: Final = 60.0
"""Until topics are asked again that got no answer."""

_KEPT_PERIODS: Final = 3
"""An answer that could not be renewed for so long is not believed any more."""


RetentionKey: TypeAlias = tuple[str, str | None]
"""Name and id of a topic: one that was created again has other settings."""


class Retentions:
    """What topics have answered. Not for several threads."""

    def __init__(self, period_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Know nothing yet.

        Args:
            period_s: A topic is asked once within it.
            clock: Steady time, s.
        """
        self._period = period_s
        self._clock = clock
        self._due: dict[RetentionKey, float] = {}
        self._known: dict[RetentionKey, tuple[float, TopicRetention]] = {}

    def due(self, topics: Collection[RetentionKey]) -> list[RetentionKey]:
        """The topics to ask now; those that were never asked come first."""
        now = self._clock()
        waiting = [topic for topic in topics if self._due.get(topic, 0.0) <= now]
        if len(self._due) > 2 * len(topics):
            self._due = {topic: due for topic, due in self._due.items() if topic in topics}
            self._known = {topic: known for topic, known in self._known.items() if topic in topics}
        return sorted(waiting, key=lambda topic: self._due.get(topic, 0.0))[:TOPICS_A_ROUND]

    def note_answers(self, answers: Mapping[RetentionKey, TopicRetention | None]) -> None:
        """Take in answers: None where a topic's settings may not be seen."""
        now = self._clock()
        for topic, retention in answers.items():
            self._due[topic] = now + self._period
            if retention is None:
                self._known.pop(topic, None)
            else:
                self._known[topic] = (now, retention)

    def postpone(self, topics: Iterable[RetentionKey]) -> None:
        """Ask topics that got no answer again in a while; what they have answered before holds for `_KEPT_PERIODS`."""
        again = self._clock() + min(_AGAIN_S, self._period)
        self._due.update(dict.fromkeys(topics, again))

    def of(self, topic: RetentionKey) -> TopicRetention | None:
        """What a topic has answered; None if that is not known, or too old."""
        known = self._known.get(topic)
        if known is None or self._clock() - known[0] > _KEPT_PERIODS * self._period:
            return None
        return known[1]


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

    def note_answer(self, minutes: int | None) -> None:
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
