"""Hours of the week in a time zone, and single spans: whether a moment lies in one, and when that ends. Pure.

Wall clocks decide, as people mean it: "22:00 to 07:00 in Berlin" is an hour shorter in the night in which clocks are
set forward, and an hour longer in the one in which they are set back.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo


class Weekly(Protocol):
    """Hours of each week (`streaming.config.Hours`)."""

    @property
    def days(self) -> frozenset[int]:
        """Days on which they begin; Monday is 0."""

    @property
    def begin(self) -> int:
        """Minute of the day."""

    @property
    def end(self) -> int:
        """Minute of the day; of the next one where it is not after `begin`."""

    @property
    def time_zone(self) -> str:
        """Name of the zone."""


def ends(hours: Weekly, now: int) -> int | None:
    """When the hours end that a moment (ms) lies in, ms; None where it lies in none.

    Hours of several days that touch each other ("all day, mon-fri") end each day: the caller asks again.
    """
    zone = ZoneInfo(hours.time_zone)
    local = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    today = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for day in (today, today - timedelta(days=1)):
        if day.weekday() not in hours.days:
            continue
        begin = _ms(day + timedelta(minutes=hours.begin), zone)
        over = hours.end if hours.end > hours.begin else hours.end + 24 * 60
        end = _ms(day + timedelta(minutes=over), zone)
        if begin <= now < end:
            return end
    return None


def latest(day: frozenset[int] | None, minute: int, time_zone: str, now: int) -> int:
    """The last moment not after `now` (ms) at which it was this minute of the day, on one of some days (None: any)."""
    zone = ZoneInfo(time_zone)
    local = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone)
    today = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for back in range(9):
        at = today - timedelta(days=back)
        moment = _ms(at + timedelta(minutes=minute), zone)
        if moment <= now and (day is None or at.weekday() in day):
            return moment
    message = "a week has each of its days"
    raise AssertionError(message)


def _ms(wall: datetime, zone: ZoneInfo) -> int:
    # (A wall time that does not exist, or exists twice, is the one before the clocks change.)
    return round(wall.replace(tzinfo=zone).timestamp() * 1000)
