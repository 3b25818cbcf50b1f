"""What the decision of a sticky leader may depend on beside what is in the group's record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assignors.library import JAVA, Library
from assignors.model import Group

__all__ = ["unrecorded"]

_STRATEGIES = frozenset({"sticky", "cooperative-sticky"})

# From here on `AbstractStickyAssignor.maxGeneration` outlives the decision.
_REMEMBERS = (3, 0)

# Above every generation that a record can hold.
_ABOVE_ALL = (1 << 31) - 1


def unrecorded(strategy: str, group: Group, library: Library) -> Iterator[tuple[Group, str | None]]:
    """Yield the group as a leader of this library may have seen it too, for all that a record tells.

    A Java leader may remember a generation above all of the members', after the group was deleted, for instance, and
    made anew while the leader lived on: rare, so that an assignment which fits only then is not called that leader's.
    A kafka-python leader may know topics that nobody subscribes to: an everyday thing.

    Returns:
        Groups to be tried beside the given one, each with the reason why a fit does not prove the candidate; None
        where it does.
    """
    if strategy not in _STRATEGIES:
        return
    if library.name == JAVA and (library.release is None or library.release >= _REMEMBERS):
        reason = "it fits only a leader that remembers a higher generation than any member's"
        yield replace(group, remembered_generation=_ABOVE_ALL), reason
    if library.name == "kafka-python":
        yield replace(group, other_topics_known=True), None
