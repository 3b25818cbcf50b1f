"""What a step of the core has at hand beside the state of its group."""

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
        config: Settings of the core.
        rows: The rows that follow are appended here.
    """

    group: str
    config: GroupConfig
    rows: Rows
