"""Days and units of time, as the tables have them."""

from __future__ import annotations

__all__ = ["MS_PER_DAY", "day_of"]

MS_PER_DAY = 86_400_000


def day_of(time_ms: int) -> int:
    """Days since the epoch, UTC, of a time in ms; what Delta's DATE is made of."""
    return time_ms // MS_PER_DAY
