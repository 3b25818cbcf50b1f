"""Clients that did not answer: they are left alone for a while, because each such question takes a broker's thread."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_FIRST_MS: Final = 20_000
"""Two rounds: a pause of a client's garbage collection is over by then."""

_LONGEST_MS: Final = 300_000
"""Clients of a proxy (gRPC) never answer; a client without heartbeats is off the lists after two minutes."""


@dataclass(frozen=True, slots=True)
class _Silence:
    times: int
    until: int


class SilentClients:
    """Who is left alone, by group and client id, and until which round's time."""

    def __init__(self) -> None:
        self._silences: dict[tuple[str, str], _Silence] = {}

    def is_left_alone(self, group: str, client: str, time: int) -> bool:
        """Whether a client is not asked in a round of this time, ms."""
        silence = self._silences.get((group, client))
        return silence is not None and silence.until - _LONGEST_MS <= time < silence.until

    def heard(self, group: str, client: str, time: int, *, answered: bool) -> None:
        """Note how a client answered in a round of this time: each further silence doubles the pause."""
        if answered:
            self._silences.pop((group, client), None)
            return
        before = self._silences.get((group, client), _Silence(0, 0)).times
        pause = min(_LONGEST_MS, _FIRST_MS * 2 ** min(before, 10))
        self._silences[group, client] = _Silence(before + 1, time + pause)

    def forget(self, there: Collection[tuple[str, str]]) -> None:
        """Forget clients that are on no list any more."""
        self._silences = {key: silence for key, silence in self._silences.items() if key in there}
