"""What a computation did, for those who explain it: `with tracing() as notes: assign(...)`.

A strategy notes its stages where it computes them, so an explanation is made from the computation itself and not from a
second one. Without `tracing` nothing is kept. Strategies that deal everything afresh note finished steps
(`assignors.steps`). The notes below are raw: sticky strategies speak of members and partitions by their numbers in the
`IndexedGroup` of the last `Believed`, and `assignors.explain` translates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = Sequence[int] | npt.NDArray[np.int64]


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
class Kept:
    """Partitions that each member keeps of those that it owned; `in_racks` where it may keep only those in its rack."""

    lists: Sequence[Numbers]
    in_racks: bool


@dataclass(frozen=True, slots=True)
class Given:
    """Partitions given to members, in order; `why` as in `assignors.steps.WHYS`."""

    why: str
    partitions: Numbers
    takers: Numbers


@dataclass(frozen=True, slots=True)
class Meant:
    """A partition that is about to move, or another one of its topic in its place; `why` as in `MOVES`."""

    partition: int
    target: int
    why: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A partition moved."""

    partition: int
    source: int
    target: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """All moves since the last `Given` were taken back."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Partitions left out of an assignment, with the member they were meant for."""

    partitions: Numbers
    members: Numbers


@dataclass(frozen=True, slots=True)
class Untold:
    """A computation whose steps are not noted, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class OnServer:
    """A step of a broker's assignor, by names: partitions are (topic id, partition).

    Attributes:
        kind: "kept", "over" (given up because of the quota), "given" or "moved".
        why: As in `assignors.steps`.
        places: (topic id, partition, member id) in order.
        source: The member that the partitions come from, for "moved".
    """

    kind: str
    why: str
    places: Sequence[tuple[str, int, str]]
    source: str | None = None


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
