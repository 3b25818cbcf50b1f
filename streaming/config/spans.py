"""Durations as people write them in settings and commands."""

from __future__ import annotations

import re
from typing import Final

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
