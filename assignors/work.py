"""Work in units: how much a computation may cost, counted the same on every machine.

Who is in a group, what its members subscribe to and what they claim are foreign numbers, and some algorithms take
members times partitions steps, or more. Those count what they do (`spend`), and a caller that must not wait sets a
limit (`at_most`). A limit in seconds would make the result depend on the machine; these units depend on the input
alone. Without a limit nothing is counted.

A unit is about what a Python loop does with one member, partition or topic: 0.1 to 1 us. NumPy's loops count by the
same time, so a unit is several of their elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from assignors.exceptions import TooMuchWork

__all__ = ["Work", "at_most", "is_limited", "spend"]


class Work:
    """What one limit allows.

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
            TooMuchWork: It would be more than is left; then it is not counted.
        """
        if self.spent + units > self.limit:
            reason = f"it takes more than the {self.limit:,} units of work that {self._what} may take"
            raise TooMuchWork(reason)
        if self._around is not None:
            self._around.spend(units)
        self.spent += units


_limit: ContextVar[Work | None] = ContextVar("limit", default=None)


@contextmanager
def at_most(units: int, what: str = "it") -> Iterator[Work]:
    """Limit the work of the block; a limit that is set already goes on around it.

    Args:
        units: What the block may spend, at least 0.
        what: What is limited, for the reason of `TooMuchWork`.

    Yields:
        What is spent in the block. Beyond the limit its computations raise `TooMuchWork`.
    """
    work = Work(units, what, _limit.get())
    token = _limit.set(work)
    try:
        yield work
    finally:
        _limit.reset(token)


def is_limited() -> bool:
    """Whether anybody counts: where to find out how much work it is would be work."""
    return _limit.get() is not None


def spend(units: int) -> None:
    """Count work that is about to be done.

    Args:
        units: Must follow from the input alone: not from the order of a set of strings, nor from what is cached.

    Raises:
        TooMuchWork: It is more than a limit leaves.
    """
    work = _limit.get()
    if work is not None:
        work.spend(units)
