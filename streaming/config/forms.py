"""Texts of settings and commands that have a form: patterns of names, durations, addresses.

A pattern is a literal name, or a regular expression between slashes ("/^payments-.*/", searched as it is).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Final

from pydantic import AfterValidator

from streaming.times import DAY_MS

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}

_SPAN = re.compile(r"(?:\d+\s*[smhdw]\s*)+")
_PART = re.compile(r"(\d+)\s*([smhdw])")

# Beyond it a number of ms is no time that anybody can show.
_LONGEST_MS: Final = 10 * 366 * DAY_MS

_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):(\d{1,5})")


def fits(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern.

    Raises:
        ValueError: The regular expression does not compile.
    """
    matcher = _matcher(pattern)
    if isinstance(matcher, str):
        return name == matcher
    return matcher.search(name) is not None


@cache
def _matcher(pattern: str) -> re.Pattern[str] | str:
    if len(pattern) < 2 or not pattern[0] == pattern[-1] == "/":
        return pattern
    try:
        return re.compile(pattern[1:-1], re.DOTALL)
    except re.error as error:
        message = f"the regular expression {pattern} does not compile: {error}"
        raise ValueError(message) from error


def _compiled(pattern: str) -> str:
    _matcher(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_compiled)]
"""A pattern in the settings; one that does not compile is refused."""


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


def _as_address(address: str) -> str:
    found = _LISTEN.fullmatch(address)
    if found is None or not 0 <= int(found[2]) <= 65_535:
        message = "it must be an address and a port, like 127.0.0.1:8090 or [::1]:8090"
        raise ValueError(message)
    return address


ListenAddress = Annotated[str, AfterValidator(_as_address)]
"""\"address:port\"; an IPv6 address in brackets."""


def host_and_port(address: ListenAddress) -> tuple[str, int]:
    """Address, without brackets, and port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
