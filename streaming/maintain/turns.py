"""Whose turn it is: each table does one piece of work, and history comes after the tables.

Pure, but for the clock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

LONGEST_S = 600
"""After this time everything that waits has its turn, however much the others still have to do, s."""


class WorkQueue:
    """A queue of names. One that has nothing to do leaves it, and all come back once it is empty, or after a while."""

    def __init__(self, names: Sequence[str], last: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nobody waiting.

        Args:
            names: All names but one, in order.
            last: The one whose turn comes when the others have nothing to do, or after `LONGEST_S`.
            clock: Seconds that only grow.
        """
        self._names, self._last, self._clock = [*names, last], last, clock
        self._waiting: deque[str] = deque()
        self._lined_up = clock()

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def begin(self) -> None:
        """Let all wait, if nobody does."""
        if not self._waiting:
            self._line_up()

    def next(self) -> str:
        """Take the next name out of the queue; there must be one."""
        if self._clock() - self._lined_up > LONGEST_S:
            # Who had nothing to do may have by now.
            self._line_up()
        return self._waiting.popleft()

    def put_back(self, name: str) -> None:
        """Let a name be the next one: its turn has not begun."""
        self._waiting.appendleft(name)

    def again(self, name: str) -> None:
        """Let a name that has more to do wait for all others, except for the last one."""
        is_early = self._clock() - self._lined_up < LONGEST_S
        if name != self._last and is_early and self._waiting and self._waiting[-1] == self._last:
            self._waiting.insert(len(self._waiting) - 1, name)
        else:
            self._waiting.append(name)

    def also(self, names: Iterable[str]) -> None:
        """Let names that have left come back, and the last one after them."""
        self._waiting.extend([*names, self._last])

    def _line_up(self) -> None:
        self._waiting.extend(name for name in self._names if name not in self._waiting)
        self._lined_up = self._clock()
