"""What the findings of `group_health` keep of a group: when it has rebalanced, and since when it commits nothing."""

from __future__ import annotations

import msgspec


class Rebalances(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """When a group has rebalanced. Changed in place by `note`.

    Attributes:
        first: Time of the first rebalance, ms; -1 before it.
        recent: Times of the newest, within `WINDOW_MS` of the newest one, oldest first, ms; at most 64.
        past: Earlier ones, each halved per day since.
        counted_at: Time up to which `past` is halved, ms.
        storm_since: Time of the first rebalance of the present storm, ms; -1 if there is none.
    """

    first: int = -1
    recent: list[int] = []
    past: float = 0.0
    counted_at: int = -1
    storm_since: int = -1


class Uncommitted(msgspec.Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """A group that owns partitions and has no committed offset.

    Attributes:
        since: Time of the last round before records arrived, ms.
        elapsed: Elapsed time then, ms.
        arrived: Records that have arrived in its partitions, as the rounds' high watermarks show.
    """

    since: int
    elapsed: int
    arrived: int = 0
