"""The strategies `sticky` and `cooperative-sticky`: members keep what they had, as far as balance allows."""

from __future__ import annotations

from assignors.sticky.java import COOPERATIVE_ERAS, STICKY_ERAS
from assignors.strategy import Strategy

__all__ = ["COOPERATIVE_STICKY", "STICKY"]

STICKY = Strategy(
    name="sticky",
    eras=STICKY_ERAS,
    otherwise="this library's sticky is not recomputed",
)
COOPERATIVE_STICKY = Strategy(
    name="cooperative-sticky",
    eras=COOPERATIVE_ERAS,
    otherwise="this library's cooperative-sticky is not recomputed",
)
