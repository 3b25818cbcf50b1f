"""Durations, times of day, days of the week and time zones, as people write them in settings and commands."""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, PlainSerializer

from streaming.times import DAY_MS

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}

_SPAN = re.compile(r"(?:\d+\s*[smhdw]\s*)+")
_PART = re.compile(r"(\d+)\s*([smhdw])")

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

# Beyond it a number of ms is no time that anybody can show.
_LONGEST_MS: Final = 10 * 366 * DAY_MS


def span_ms(text: str) -> int:
    """A duration in ms: "90s", "30m", "2h", "1h 30m", "7d", "2w".

    Raises:
        ValueError: It is none, or is nothing, or longer than ten years.
    """
    given = text.strip().lower()
    if _SPAN.fullmatch(given):
        found = sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(given))
        if 0 < found <= _LONGEST_MS:
            return found
    message = f"{text!r} is not a duration: write it like 30m, 2h, 1h30m or 7d"
    raise ValueError(message)


def span_text(ms: int) -> str:
    """A duration as it is written: "1h 30m"."""
    parts, left = [], ms // 1_000
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts) or "0s"


def _span(given: Any) -> int:
    if not isinstance(given, str):
        message = "a duration is a text like 30m, 2h or 7d"
        raise ValueError(message)  # noqa: TRY004 - pydantic shows only a ValueError's text
    return span_ms(given)


def _minute(given: Any) -> int:
    if isinstance(given, time):
        return given.hour * 60 + given.minute
    found = _CLOCK.fullmatch(given.strip()) if isinstance(given, str) else None
    if found is None or int(found[1]) > 24 or int(found[2]) > 59 or (int(found[1]) == 24 and int(found[2])):
        message = f"{given!r} is not a time of day: write it like 07:30"
        raise ValueError(message)
    return (int(found[1]) * 60 + int(found[2])) % (24 * 60)


def _days(given: Any) -> frozenset[int]:
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not listed:
        message = "days are a list like ['mon-fri', 'sun']"
        raise ValueError(message)
    found: set[int] = set()
    for one in listed:
        first, _, last = (part.strip().lower()[:3] for part in str(one).partition("-"))
        last = last or first
        if first not in DAYS or last not in DAYS:
            message = f"{one!r} is not a day: write mon, tue, wed, thu, fri, sat, sun, or a span like mon-fri"
            raise ValueError(message)
        begin, end = DAYS.index(first), DAYS.index(last)
        found |= {day % 7 for day in range(begin, end + 1 if end >= begin else end + 8)}
    return frozenset(found)


def _zone(given: Any) -> str:
    try:
        return ZoneInfo(given).key
    except (ValueError, KeyError, OSError, TypeError, AttributeError):
        message = f"{given!r} is not a time zone: write its name in the IANA database, like Europe/Berlin or UTC"
        raise ValueError(message) from None


def clock_text(minute: int) -> str:
    """A minute of the day as it is written: "07:30"."""
    return f"{minute // 60:02}:{minute % 60:02}"


def _days_text(days: frozenset[int]) -> list[str]:
    return [DAYS[day] for day in sorted(days)]


# (Settings are passed on to other processes as they are written.)

Span = Annotated[int, BeforeValidator(_span), PlainSerializer(span_text)]
"""A duration in ms, written as `span_ms` reads it."""

Minute = Annotated[int, BeforeValidator(_minute), PlainSerializer(clock_text)]
"""Minutes since midnight, written "HH:MM"; "24:00" is midnight."""

Days = Annotated[frozenset[int], BeforeValidator(_days), PlainSerializer(_days_text)]
"""Days of the week, Monday is 0; written as names and spans of names."""

Zone = Annotated[str, BeforeValidator(_zone)]
"""Name of a time zone."""
