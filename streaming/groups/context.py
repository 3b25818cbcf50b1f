"""What each step of the core gets in addition to the group's state."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.groups.config import GroupConfig
from streaming.groups.rows import Rows

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """One group in one call of `advance`.

    Attributes:
        group: Group id.
        config: The core's settings.
        rows: Rows are appended here.
    """

    group: str
    config: GroupConfig
    rows: Rows
