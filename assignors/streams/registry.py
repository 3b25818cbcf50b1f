"""The sticky task assignor by release. `sticky` is the only assignor of streams groups up to 4.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assignors.context import spend
from assignors.exceptions import CannotTell, UnknownLibrary
from assignors.strategy import JAVA, Library, Release, parse_library
from assignors.streams.model import StreamsGroup, TaskAssignment
from assignors.streams.sticky import assign_since_4_2, assign_since_4_4
from assignors.streams.sticky_of_4_1 import assign_of_4_1

# The behaviours and the first release of each, the newest first.
_ERAS: tuple[tuple[Release, Callable[[StreamsGroup], TaskAssignment]], ...] = (
    ((4, 4), assign_since_4_4),
    ((4, 2), assign_since_4_2),
    ((4, 1), assign_of_4_1),
)

STREAMS_ERAS: Final = ("4.1.0", "4.2.0", "4.4.0")
"""First release of each era, oldest first."""


def assign_tasks(group: StreamsGroup, release: Library | str | None = None) -> TaskAssignment:
    """Recompute the target assignment that a group coordinator computed with its sticky task assignor.

    Args:
        group: Members with their previous tasks, and the topology, at the decision. While source topics are missing the
            coordinator calls no assignor: then every target is empty.
        release: The broker's release, as a value or as text ("4.3.1"); None means the newest.

    Returns:
        Active and standby tasks by member.

    Raises:
        UnknownLibrary: The release cannot be parsed, or belongs to another library.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` if the work would exceed a
            limit (`assignors.context`).
        LeaderWouldFail: The assignor throws on this input, so it did not compute a target from it.
    """
    broker = parse_library(release) if isinstance(release, str) else release or Library(JAVA)
    if broker.name != JAVA:
        message = f"{broker} is not a Kafka release: give one such as 4.3.1."
        raise UnknownLibrary(message)
    for since, recompute in _ERAS:
        if broker.release is None or broker.release >= since:
            spend(group.least_work)
            return recompute(group)
    reason = "streams groups exist since Kafka 4.1"
    raise CannotTell(reason)
