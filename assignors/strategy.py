"""A strategy: its name, and for each library the eras in which its result was computed differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assignors.assignment import Assignment
from assignors.exceptions import CannotTell
from assignors.library import CUSTOM, JAVA, Library, Release
from assignors.model import Group

__all__ = ["Era", "PartitionRacks", "Recompute", "Strategy"]

PartitionRacks = Mapping[str, Sequence[Sequence[str]]]
"""Racks of the replicas of each partition, by topic: racks[topic][partition] lists them, in any order."""

Recompute = Callable[[Group, PartitionRacks | None], Assignment]
"""Computes the assignment of a leader of one era; raises CannotTell or LeaderWouldFail (assignors.exceptions)."""


@dataclass(frozen=True, slots=True)
class Era:
    """A span of releases of one library in which a strategy behaves the same.

    Attributes:
        library: Name of the library.
        recompute: The behaviour; eras with the same function behave the same.
        since: First release of the era; for the first era, the first release with consumer groups.
        before: First release after it; None if it lasts.
    """

    library: str
    recompute: Recompute
    since: Release
    before: Release | None = None

    def holds(self, release: Release | None) -> bool:
        """Whether the release is in this era; None means the newest release, so the last era."""
        if release is None:
            return self.before is None
        return release >= self.since and (self.before is None or release < self.before)

    def __str__(self) -> str:
        since = f">= {'.'.join(map(str, self.since))}"
        before = "" if self.before is None else f", < {'.'.join(map(str, self.before))}"
        return f"{self.library} {since}{before}"


@dataclass(frozen=True, slots=True)
class Strategy:
    """An assignment strategy under its protocol name.

    Attributes:
        name: Protocol name in the group's record, for example "range".
        eras: Behaviours by library, each library's eras without gaps or overlaps; may be empty.
        otherwise: Reason of `CannotTell` for a library without an era.
        deterministic: Whether equal inputs give equal results; if not, a result that differs from the group's
            assignment proves nothing.
    """

    name: str
    eras: tuple[Era, ...]
    otherwise: str
    deterministic: bool = True

    @property
    def custom(self) -> bool:
        """Whether it is a user's own, which gives the same result whichever library led."""
        return bool(self.eras) and self.eras[0].library == CUSTOM

    def era(self, library: Library | None) -> Era:
        """The era of a library; None means the newest Java.

        Raises:
            CannotTell: No era of this library is known.
        """
        wanted = Library(CUSTOM) if self.custom else library or Library(JAVA)
        for era in self.eras:
            if era.library == wanted.name and era.holds(wanted.release):
                return era
        raise CannotTell(self.otherwise)
