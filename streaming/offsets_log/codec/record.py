"""One record of the offsets log as it was fetched, and what stands for its bytes where they cannot be decoded.

Bad data is a value: it ends in a table, not in a stack trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["LogRecord", "Rejected", "UnknownVersion"]


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


@dataclass(frozen=True, slots=True)
class Rejected:
    """Bytes that do not follow the layout of their type.

    Attributes:
        reason: What is wrong and where, in one sentence, without the bytes.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """A value of a version that this codec does not know: written by a newer broker, not damaged.

    Attributes:
        version: The int16 at the head of the value.
    """

    version: int
