"""One record of the offsets log as it was fetched."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LogRecord"]


class LogRecord(NamedTuple):
    """A record and its place in the log; a named tuple, because it is created on the hot path.

    Attributes:
        offset: Log offset.
        timestamp: Record timestamp, ms.
        key: Key bytes; None when null.
        value: Value bytes; None for a tombstone.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
