"""Whether this machine's probe stands by for another one, as its log says: nothing else comes from a child process."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streaming.probe import STANDING_BY, TOOK_OVER, WATCHING
from streaming.process import LogFollower
from streaming.terminal import printable

_PROBE: Final = "probe "
"""How lines of `probe.log` begin (`LogFollower`)."""

_LONGEST: Final = 300
"""Characters of the sentence that are shown; ours has some 150."""


class StandingBy:
    """What the probe says of its turn. Call `look` now and then, and `close` at the end.

    Attributes:
        sentence: Why it makes no rounds; None while it makes them.
    """

    def __init__(self, logs: Path) -> None:
        """Follow the logs of a folder from now on."""
        self.sentence: str | None = None
        self._follower = LogFollower(logs, self._take)

    def look(self) -> None:
        """Read the new lines."""
        self._follower.look()

    def close(self) -> None:
        """Close the files."""
        self._follower.close()

    def _take(self, line: str) -> None:
        # "probe   | 2026-11-25 13:00:00,000 INFO streaming.probe: Standing by: ..."
        source, _, said = line.partition(" streaming.probe: ")
        if not source.startswith(_PROBE):
            return
        if said.startswith(STANDING_BY):
            self.sentence = printable(said.strip())[:_LONGEST]
        elif said.startswith((TOOK_OVER, WATCHING)):
            self.sentence = None
