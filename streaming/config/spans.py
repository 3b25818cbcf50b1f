"""Durations as people write them in settings and commands."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer

from streaming.times import DAY_MS

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}

_SPAN = re.compile(r"(?:\d+\s*[smhdw]\s*)+")
_PART = re.compile(r"(\d+)\s*([smhdw])")

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


# Settings are passed on to other processes as they are written.

Span = Annotated[int, BeforeValidator(_span), PlainSerializer(span_text)]
"""A duration in ms, written as `span_ms` reads it."""
