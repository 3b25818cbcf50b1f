"""For how long rounds have shown something, in elapsed time: the first round that does not show it forgets it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from streaming.groups.kind import FindingAtRound, some
from streaming.groups.rocketmq.state import Watched

_MOST_WATCHED: Final = 1_000
"""Parts of one finding that are kept from round to round: enough to judge by, and no finding takes the room of another.
More wrong ones never last while the first are there, so a detail says "at least"."""


class Watch:
    """What this round shows, and for how long rounds have shown it."""

    def __init__(self, before: Mapping[str, Watched], elapsed: int, now: int) -> None:
        """Begin a round.

        Args:
            before: What the round before has shown, as `kept` gave it.
            elapsed: Elapsed time of this round, ms.
            now: Its time, ms.
        """
        self._before, self._elapsed, self.time = before, elapsed, now
        self._now: dict[str, Watched] = {}

    def see(self, name: str) -> int:
        """Note that this round shows something; for how long all rounds have, ms; -1 at the first one.

        Args:
            name: What it is of (a finding), a blank, and which one of these.
        """
        watched = self._now.get(name)
        if watched is None:
            watched = self._before.get(name)
            if watched is None or watched.since > self._elapsed:
                watched = Watched(self._elapsed, 0)
            watched.rounds += 1
            self._now[name] = watched
        if watched.rounds > 1:
            return self._elapsed - watched.since
        return -1

    def is_known(self, name: str) -> bool:
        """Whether the round before has shown it."""
        return name in self._before

    def finding(self, name: str, least: int, lasted: Collection[int], detail: str) -> list[FindingAtRound]:
        """The finding, which is shown once anything has lasted for `least` ms; none where nothing is seen.

        Args:
            name: Its name.
            least: How long that is, ms.
            lasted: For how long rounds have shown each part of it, as `see` gives it.
            detail: Its detail.
        """
        if not lasted:
            return []
        longest = max(lasted)
        return [FindingAtRound(name, self.time - max(0, longest), detail, shown=longest >= least)]

    def listing(
        self, name: str, least: int, parts: Sequence[tuple[int, str]], before: str, after: str = ""
    ) -> list[FindingAtRound]:
        """The finding with a detail that lists the first of what has lasted, and how many more there are.

        Args:
            name: Its name.
            least: As in `finding`.
            parts: What rounds show of it, each with how long they have (`see`).
            before: The detail before the list.
            after: The detail after it.
        """
        last = [part for lasted, part in parts if lasted >= least]
        # There is no room to watch more, so there may be more that last.
        text = before + some(last) + ("" if len(parts) <= _MOST_WATCHED else ", at least") + after
        return self.finding(name, least, [lasted for lasted, _ in parts], text)

    def kept(self) -> dict[str, Watched]:
        """What this round has shown, as the state keeps it."""
        counts = Counter[str]()
        kept = {}
        for name, watched in self._now.items():
            finding = name.partition(" ")[0]
            counts[finding] += 1
            if counts[finding] <= _MOST_WATCHED:
                kept[name] = watched
        return kept
