"""The limit of a computation's work.

**Units of work**: the cost of a computation, counted the same on every machine. A group's members, subscriptions and
claims come from outside, and some algorithms take members times partitions steps, or more. They count their work
(`spend`), and a caller that must not wait sets a limit (`at_most`). A limit in seconds would make the result depend on
the machine; these units depend only on the input. Without a limit nothing is counted. A unit is about the work of a
Python loop on one member, partition or topic: 0.1 to 1 us. NumPy's loops count by the same time, so several of their
elements are one unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from assignors.exceptions import TooMuchWork


class Work:
    """One limit and the work done under it.

    Attributes:
        limit: Units that may be spent.
        spent: Units spent so far, never above the limit.
    """

    __slots__ = ("_around", "_what", "limit", "spent")

    def __init__(self, limit: int, what: str, around: Work | None) -> None:
        self.limit = limit
        self.spent = 0
        self._what = what
        self._around = around

    def spend(self, units: int) -> None:
        """Count work, here and in the limits around this one.

        Raises:
            TooMuchWork: It would exceed the limit; then it is not counted.
        """
        if self.spent + units > self.limit:
            reason = f"it takes more than the {self.limit:,} units of work allowed for {self._what}"
            raise TooMuchWork(reason)
        if self._around is not None:
            self._around.spend(units)
        self.spent += units


_limit: ContextVar[Work | None] = ContextVar("limit", default=None)


@contextmanager
def at_most(units: int, what: str = "it") -> Iterator[Work]:
    """Limit the work of a block, in addition to limits that are already set.

    Args:
        units: Limit of the block, at least 0.
        what: Name of the limited work, for the reason of `TooMuchWork`.

    Yields:
        The work of the block so far. Beyond the limit computations in the block raise `TooMuchWork`.
    """
    work = Work(units, what, _limit.get())
    token = _limit.set(work)
    try:
        yield work
    finally:
        _limit.reset(token)


def is_limited() -> bool:
    """Whether a limit is set; check it where computing the amount of work would cost time itself."""
    return _limit.get() is not None


def spend(units: int) -> None:
    """Count work that is about to be done.

    Args:
        units: Must depend only on the input, not on the order of a set of strings or on a cache.

    Raises:
        TooMuchWork: It would exceed a limit.
    """
    work = _limit.get()
    if work is not None:
        work.spend(units)
