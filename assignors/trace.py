"""What a computation did, for those who explain it: `with tracing() as notes: assign(...)`.

A strategy notes its stages where it computes them, so an explanation is made from the computation itself and not from a
second one. Without `tracing` nothing is kept. Strategies that deal everything afresh note finished steps
(`assignors.steps`). The notes below are raw: sticky strategies of clients speak of members and partitions by their
numbers in the `IndexedGroup` of the last `Believed`, and `assignors.explain` translates them.
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
