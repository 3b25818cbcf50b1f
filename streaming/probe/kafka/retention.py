"""Settings of brokers, topics and groups: whom to ask for them, once per heartbeat, and what they answered.

Settings change rarely and need a right of their own (DescribeConfigs), which may be missing. So no round waits for
them, and a few topics are asked in each. None of this outlives the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from streaming.lifecycle import room_log
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.kafka.requests import Refused

_LOG = room_log(__name__)

_ASK_S: Final = 2.0
"""Settings are worth a moment: brokers answer from memory, for a thousand topics in some tens of ms."""

TOPICS_A_ROUND: Final = 1_000
"""A cluster of ten thousand topics is known after ten rounds, and no round asks for more than some 100 KB."""


RetentionKey: TypeAlias = tuple[str, str | None]
"""Name and id of a topic: one that was created again has other settings. Others have no id."""

_V = TypeVar("_V")


class AskedSettings(Generic[_V]):
    """Settings of one kind: how to ask for them, and what was answered. Not for several threads."""

    def __init__(
        self,
        period_s: float,
        what: str,
        lacking: str,
        ask: Callable[[Sequence[str], Deadline], Mapping[str, _V | Refused | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Know nothing yet.

        Args:
            period_s: Each is asked once within it.
            what: What they tell, for the log.
            lacking: The sentence that is logged once where the right is missing.
            ask: Gives the answers by name; None or a refusal where settings may not be seen.
            clock: Steady time, s.
        """
        self._period_s, self._what, self._lacking, self._ask, self._clock = period_s, what, lacking, ask, clock
        self._known: dict[RetentionKey, tuple[float, _V | None]] = {}
        self._is_lacking = False

    def renew(self, keys: Collection[RetentionKey], deadline: Deadline) -> None:
        """Ask those whose turn it is; no round fails by it, and the last answer holds where there is none."""
        if len(self._known) > 2 * len(keys):
            self._known = {key: known for key, known in self._known.items() if key in keys}
        now = self._clock()
        due = [key for key in keys if key not in self._known or self._known[key][0] <= now - self._period_s]
        due = due[:TOPICS_A_ROUND]
        if not due:
            return
        answers: Mapping[str, _V | Refused | None] = {}
        try:
            answers = self._ask([name for name, _ in due], deadline.at_most(_ASK_S))
        except RoundAbandonedError as error:
            _LOG.info("Could not ask %s: %s.", self._what, error)
        if Refused.FORBIDDEN in answers.values() and not self._is_lacking:
            self._is_lacking = True
            _LOG.info("%s", self._lacking)
        for key in due:
            answer = answers.get(key[0], self.of(key))
            self._known[key] = (now, None if isinstance(answer, Refused) else answer)

    def of(self, key: RetentionKey) -> _V | None:
        """The answer; None if it is not known."""
        return self._known.get(key, (0.0, None))[1]

    def of_groups(self, groups: Sequence[str], deadline: Deadline) -> dict[str, _V]:
        """Settings of groups, asked for where it is their turn, as far as they are known."""
        self.renew([(group, None) for group in groups], deadline)
        found = {group: self.of((group, None)) for group in groups}
        return {group: settings for group, settings in found.items() if settings is not None}
