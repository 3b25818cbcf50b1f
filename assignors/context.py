"""What a computation runs with: a limit of its work, and the notes of those who explain it.

**Units of work**: the cost of a computation, counted the same on every machine. A group's members, subscriptions and
claims come from outside, and some algorithms take members times partitions steps, or more. They count their work
(`spend`), and a caller that must not wait sets a limit (`at_most`). A limit in seconds would make the result depend on
the machine; these units depend only on the input. Without a limit nothing is counted. A unit is about the work of a
Python loop on one member, partition or topic: 0.1 to 1 us. NumPy's loops count by the same time, so several of their
elements are one unit.

**Notes**: `with tracing() as notes: assign(...)`. A strategy notes its stages where it computes them, so an explanation
is made from the computation itself and not from a second one. Without `tracing` nothing is kept. Strategies that deal
everything afresh note finished steps (`assignors.steps`). `Note` is raw: sticky strategies of clients speak of members
and partitions by their numbers in the `IndexedGroup` of the last `Believed`, and `assignors.explain` translates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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


Numbers = Sequence[int] | npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Believed:
    """Previous owners: a sticky computation begins, which replaces what was noted since the last one.

    Attributes:
        indexed: The `IndexedGroup`, whose module notes and therefore cannot be imported here.
        owned: Partitions of each member whose claims count.
        data: What each member claims, as `MemberData`.
        by: "highest" where only the highest generation counts, "partition" where each partition's newest claim does.
        multi: Partitions that several members of one generation claim.
    """

    indexed: Any
    owned: Sequence[Numbers]
    data: Sequence[Any]
    by: str
    multi: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Note:
    """One stage of a computation that lets members keep partitions.

    Attributes:
        kind: "kept"; "over" (given up because of a share); "given"; "meant" (about to move, or another one of its topic
            in its place); "moved"; "undone" (all moves since the last "given" were taken back); "held_back" (left out
            of the assignment); "untold" (the steps of the computation are not noted).
        why: For "given", "meant" and "moved" as in `assignors.explain.sticky_steps`; for "kept" "rack" where a member
            may keep only those in its rack; for "untold" the reason.
        places: (partition, member) in order. A broker's assignor names both: ((topic id, number), member id).
        source: The member that the partitions come from, for "moved".
    """

    kind: str
    why: str = ""
    places: Sequence[tuple[Any, Any]] = ()
    source: Any = None


def note_kept(lists: Sequence[Numbers], *, in_racks: bool) -> None:
    """Note what each member keeps; `in_racks` where it may keep only those in its rack."""
    note(
        lambda: [
            Note(
                "kept",
                "rack" if in_racks else "",
                [(partition, member) for member, ids in enumerate(lists) for partition in ids],
            )
        ]
    )


_notes: ContextVar[list[object] | None] = ContextVar("notes", default=None)


@contextmanager
def tracing() -> Iterator[list[object]]:
    """Keep the notes of the computations in this block.

    Yields:
        The notes so far, in order.
    """
    kept: list[object] = []
    token = _notes.set(kept)
    try:
        yield kept
    finally:
        _notes.reset(token)


def notes() -> list[object] | None:
    """The notes of the present block; None outside of one."""
    return _notes.get()


def note(make: Callable[[], Iterable[object]]) -> None:
    """Keep notes if there is a block that keeps them; only then are they made."""
    if (kept := _notes.get()) is not None:
        kept += make()
