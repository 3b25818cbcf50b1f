"""Spans of time that boards and charts show, and the columns of their axes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)

LIVE: Final = "live"

RANGES: Final[Mapping[str, timedelta]] = {
    LIVE: HOUR,
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

    def whole(self, width: timedelta) -> Range:
        """The whole minutes, hours or days (UTC) that it touches: the same question is asked for as long as one."""
        return Range(self.name, floor(self.begin, width), floor(self.end, width) + width)

    @property
    def before(self) -> Range:
        """The span of the same length that ends where this one begins."""
        return Range("", self.begin - self.length, self.begin)


MOST_COLUMNS: Final = 100
"""More are narrower than a finger, and a reader of a table has no use for them."""

_MINUTES: Final = (1, 2, 5, 10, 15, 20, 30, 60)
_STEPS: Final = {"minute": MINUTE, "hour": HOUR}
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


def step_of(span: Range, most: int) -> str:
    """minute, hour or day: the shortest step of date_trunc of which a span has at most so many."""
    return next((step for step, width in _STEPS.items() if span.length <= most * width), "day")


def minutes_of(length: timedelta) -> int:
    """Length of a column for a span of up to four days, min."""
    return next((m for m in _MINUTES if length <= m * MOST_COLUMNS * MINUTE), _MINUTES[-1])


def hours_of(length: timedelta) -> int:
    """Length of a column for a longer span, h: a part of a day, or several days."""
    needed = length / timedelta(hours=MOST_COLUMNS)
    return next((h for h in _HOURS if needed <= h), 24 * -(-int(needed + 1) // 24))


def steps_of(begin: datetime, end: datetime) -> Steps:
    """The columns of any span, from before its beginning to after its end."""
    length = end - begin
    by_minutes = length <= _MINUTES[-1] * MOST_COLUMNS * MINUTE
    width = timedelta(minutes=minutes_of(length)) if by_minutes else timedelta(hours=hours_of(length))
    first = floor(begin, min(width, DAY))
    return Steps(first, width, max(1, -(-(end - first) // width)))


def floor(moment: datetime, width: timedelta) -> datetime:
    """The beginning of the step, counted from midnight UTC, that a moment lies in."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return moment - (moment - epoch) % width
