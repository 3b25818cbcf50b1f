"""Bad data as a value: bytes that cannot be decoded end in a table, not in a stack trace."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rejected", "UnknownVersion"]


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
