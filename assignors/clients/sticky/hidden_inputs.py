"""Inputs of a sticky leader's decision that the group's record does not contain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assignors.library import JAVA, Library
from assignors.model import Group

__all__ = ["unrecorded"]

_STRATEGIES = frozenset({"sticky", "cooperative-sticky"})

# From this release on `AbstractStickyAssignor.maxGeneration` is kept between decisions.
_REMEMBERS = (3, 0)

# Above every generation that a record can contain.
_ABOVE_ALL = (1 << 31) - 1


def unrecorded(strategy: str, group: Group, library: Library) -> Iterator[tuple[Group, str | None]]:
    """Yield other groups that a leader of this library may have seen, consistent with the record.

    A Java leader may remember a generation above all of the members', for instance if the group was deleted and created
    again while the leader's process lived on. This is rare, so an assignment that fits only then is not attributed to
    that leader. A kafka-python leader may know topics that nobody subscribes to, which is common.

    Returns:
        Groups to try besides the given one, each with the reason why a fit does not prove the candidate; None where it
        does.
    """
    if strategy not in _STRATEGIES:
        return
    if library.name == JAVA and (library.release is None or library.release >= _REMEMBERS):
        reason = "it fits only a leader that remembers a higher generation than any member's"
        yield replace(group, remembered_generation=_ABOVE_ALL), reason
    if library.name == "kafka-python":
        yield replace(group, other_topics_known=True), None
