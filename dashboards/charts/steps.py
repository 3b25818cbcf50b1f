"""Columns of a time axis: not too many to be distinguished, each a round number of minutes, hours or days. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["MOST_COLUMNS", "Steps", "floor", "hours_of", "minutes_of", "steps_of"]

MOST_COLUMNS: Final = 100
"""More are narrower than a finger, and a reader of a table has no use for them."""

_MINUTES: Final = (1, 2, 5, 10, 15, 20, 30, 60)
_HOURS: Final = (1, 2, 3, 4, 6, 8, 12, 24)


@dataclass(frozen=True, slots=True)
class Steps:
    """The columns of a map or a chart.

    Attributes:
        begin: Beginning of the first.
        width: Length of each.
        number: How many.
    """

    begin: datetime
    width: timedelta
    number: int

    def at(self, moment: datetime) -> int:
        """The column of a moment; below 0 or beyond the last outside of them."""
        return (moment - self.begin) // self.width

    def end(self, column: int) -> datetime:
        """The end of a column."""
        return self.begin + (column + 1) * self.width


def minutes_of(length: timedelta) -> int:
    """Length of a column for a span of up to four days, min."""
    return next((m for m in _MINUTES if length <= m * timedelta(minutes=MOST_COLUMNS)), _MINUTES[-1])


def hours_of(length: timedelta) -> int:
    """Length of a column for a longer span, h: a part of a day, or several days."""
    needed = length / timedelta(hours=MOST_COLUMNS)
    return next((h for h in _HOURS if needed <= h), 24 * -(-int(needed + 1) // 24))


def steps_of(begin: datetime, end: datetime) -> Steps:
    """The columns of any span, from before its beginning to after its end."""
    length = end - begin
    by_minutes = length <= _MINUTES[-1] * timedelta(minutes=MOST_COLUMNS)
    width = timedelta(minutes=minutes_of(length)) if by_minutes else timedelta(hours=hours_of(length))
    first = floor(begin, min(width, timedelta(days=1)))
    return Steps(first, width, max(1, -(-(end - first) // width)))


def floor(moment: datetime, width: timedelta) -> datetime:
    """The beginning of the step, counted from midnight UTC, that a moment lies in."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return moment - (moment - epoch) % width
