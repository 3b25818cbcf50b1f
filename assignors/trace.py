"""What a computation did, for those who explain it: `with tracing() as notes: assign(...)`.

A strategy notes its stages where it computes them, so an explanation is made from the computation itself and not from a
second one. Without `tracing` nothing is kept. Notes are raw: sticky strategies speak of members and partitions by their
numbers in the `IndexedGroup` of the last `Began`; `assignors.explain` translates them and checks every one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = Sequence[int] | npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ordered:
    """The leader's order of members.

    Attributes:
        rule: Name of the order, one of `assignors.explain.steps.ORDERS`.
        members: Member ids.
    """

    rule: str
    members: Sequence[str]


@dataclass(frozen=True, slots=True)
class Cut:
    """Topics that are cut into blocks alike.

    Attributes:
        topics: Topics (for a broker their ids).
        partitions: Partition count of each.
        takers: Subscribers in order, as often as they are counted.
        blocks: What each member got.
    """

    topics: Sequence[str]
    partitions: int
    takers: Sequence[str]
    blocks: Sequence[tuple[str, Collection[int]]]


@dataclass(frozen=True, slots=True)
class CutInRacks:
    """Topics that are dealt alike by racks: first partitions in the members' racks, then the rest.

    Attributes:
        topics: Topics.
        partitions: Partition count of each.
        takers: Subscribers in order.
        in_racks: (member id, partition) in the order in which they were given.
        rest: The same for the partitions that were given without regard to racks.
    """

    topics: Sequence[str]
    partitions: int
    takers: Sequence[str]
    in_racks: Sequence[tuple[str, int]]
    rest: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Turns:
    """Partitions dealt in turn: (topic, partition, member id) in the order of the deal."""

    dealt: Sequence[tuple[str, int, str]]


@dataclass(frozen=True, slots=True)
class Began:
    """A sticky computation over this group; it replaces what was noted since the last one."""

    indexed: Any  # an `IndexedGroup`, which notes and therefore cannot be imported here


@dataclass(frozen=True, slots=True)
class Believed:
    """Previous owners.

    Attributes:
        owned: Partitions of each member whose claims count.
        data: What each member claims, as `MemberData`.
        by: "highest" where only the highest generation counts, "partition" where each partition's newest claim does.
        multi: Partitions that several members of one generation claim.
    """

    owned: Sequence[Numbers]
    data: Sequence[Any]
    by: str
    multi: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Shares:
    """Quotas: partitions of all topics, and number of members."""

    partitions: int
    members: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Partitions that each member keeps of those that it owned; `in_racks` where it may keep only those in its rack."""

    lists: Sequence[Numbers]
    in_racks: bool


@dataclass(frozen=True, slots=True)
class Given:
    """Partitions given to members, in order; `why` as in `assignors.explain.steps.WHYS`."""

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
class GivenBack:
    """Unassigned partitions returned to the members that own them: (member id, topic, partition)."""

    places: Sequence[tuple[str, str, int]]


@dataclass(frozen=True, slots=True)
class Untold:
    """A computation whose steps are not noted, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class OnServer:
    """A step of a broker's assignor, by names: partitions are (topic id, partition).

    Attributes:
        kind: "kept", "over" (given up because of the quota), "given" or "moved".
        why: As in `assignors.explain.steps`.
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
    """The notes of the present block; None outside of one. Ask before building a note that costs something."""
    return _notes.get()
