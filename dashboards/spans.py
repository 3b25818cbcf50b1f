"""Spans of time that boards and charts show. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

__all__ = ["LIVE", "RANGES", "Range"]

LIVE: Final = "live"

RANGES: Final[Mapping[str, timedelta]] = {
    LIVE: timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "1y": timedelta(days=365),
}
"""Spans before now, by the value of `range`."""


@dataclass(frozen=True, slots=True)
class Range:
    """A span of time.

    Attributes:
        name: Key of RANGES; "" for an absolute one.
        begin: First moment, UTC.
        end: Last moment, UTC.
    """

    name: str
    begin: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.end - self.begin

    @property
    def before(self) -> Range:
        """The span of the same length that ends where this one begins."""
        return Range("", self.begin - self.length, self.begin)
