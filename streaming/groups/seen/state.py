"""What the core remembers of its looks at a group whose log is not read."""

from __future__ import annotations

import msgspec


class SeenState(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The looks so far.

    Attributes:
        looked: Time of the newest round that looked at the membership, or that knew that there was no such group, by
            its own clock, ms; -1 if none did.
        empty: At that look the group had no members.
        untold: Number of its members, if they are too large to be reported; 0 otherwise.
    """

    looked: int = -1
    empty: bool = False
    untold: int = 0
