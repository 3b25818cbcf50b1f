"""The sticky task assignor by release. `sticky` is the only assignor of streams groups up to 4.4."""

from __future__ import annotations

from typing import Final

from assignors.eras import Eras, assign_as_of
from assignors.strategy import Library
from assignors.streams.model import StreamsGroup, TaskAssignment
from assignors.streams.sticky import assign_since_4_2, assign_since_4_4
from assignors.streams.sticky_of_4_1 import assign_of_4_1

_ERAS: Eras[StreamsGroup, TaskAssignment] = (
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
    return assign_as_of(_ERAS, group, release, "sticky")
