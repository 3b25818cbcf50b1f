"""What findings about RocketMQ's groups are about, and for how long rounds have shown it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streaming.groups.health.columns import FindingAtRound
from streaming.groups.rocketmq.state import RocketMQState, Watched

_MOST_WATCHED: Final = 2_000
"""Queues that are watched at once. More wrong ones are counted while the first are there."""


class Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, mine: RocketMQState, elapsed: int) -> None:
        self._before, self._elapsed = mine.watched, elapsed
        self.now: dict[str, Watched] = {}

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one."""
        watched = self.now.get(name) or self._before.get(name)
        if watched is None or watched.since > self._elapsed:
            self.now[name] = Watched(self._elapsed)
            return -1
        if name not in self.now:
            watched.rounds += 1
            self.now[name] = watched
        return self._elapsed - watched.since

    def has_room(self) -> bool:
        """Whether one more may be watched."""
        return len(self.now) < _MOST_WATCHED

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
