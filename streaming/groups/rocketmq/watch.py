"""What findings about RocketMQ's groups are about, and for how long rounds have shown it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from streaming.groups.health.columns import FindingAtRound
from streaming.groups.rocketmq.state import RocketMQState, Watched

_MOST_WATCHED: Final = 1_000
"""Queues or connections that are watched at once for one finding: enough to judge by, and no finding takes the room of
another. More wrong ones are not counted while the first are there, so a detail says "at least"."""


class Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, mine: RocketMQState, elapsed: int) -> None:
        self._before, self._elapsed = mine.watched, elapsed
        self.now: dict[str, Watched] = {}
        self._watched = Counter[str]()

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one.

        Args:
            name: The finding, a blank, and what it is about.
        """
        if name not in self.now:
            self._watched[name.partition(" ")[0]] += 1
        watched = self.now.get(name) or self._before.get(name)
        if watched is None or watched.since > self._elapsed:
            self.now[name] = Watched(self._elapsed)
            return -1
        if name not in self.now:
            watched.rounds += 1
            self.now[name] = watched
        return self._elapsed - watched.since

    def has_room(self, finding: str) -> bool:
        """Whether one more may be watched for a finding."""
        return self._watched[finding] < _MOST_WATCHED

    def is_known(self, name: str) -> bool:
        """Whether the round before has shown it."""
        return name in self._before

    def longest(self, prefixes: Sequence[str]) -> int:
        """For how long rounds have shown anything with such a name, ms; -1 if nothing."""
        return max(
            (self._elapsed - of.since for name, of in self.now.items() if name.startswith(tuple(prefixes))), default=-1
        )


def found_after(name: str, lasted: int, least: int, detail: str, now: int) -> FindingAtRound:
    """A finding that is shown once it has lasted for so long."""
    return FindingAtRound(name, now - max(0, lasted), detail, shown=lasted >= least)
