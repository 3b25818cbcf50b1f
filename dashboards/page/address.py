"""Addresses of the page: what a URL asks for, and the URLs of links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote, urlencode

from dashboards import format as words
from dashboards.spans import LIVE, RANGES, Range

# Longer values of parameters are none of ours: names in links are cut to a digest far below.
_LONGEST = 2_000

_LONGEST_SPAN = timedelta(days=3 * 366)


class RefusedError(Exception):
    """Nothing can be shown at an address; the text is one sentence, `status` the HTTP status."""

    status = 404


class WrongAddressError(RefusedError):
    """The address asks for something that cannot be."""

    status = 400


@dataclass(frozen=True, slots=True)
class Address:
    """One URL, below the server's root.

    Attributes:
        path: Its segments, decoded: () for the overview.
        given: Parameters that are known to the board and not empty.
        span: Key of RANGES that holds where no span is given.
    """

    path: tuple[str, ...]
    given: Mapping[str, str]
    span: str = LIVE

    @classmethod
    def of(
        cls, path: tuple[str, ...], parameters: Iterable[tuple[str, str]], known: frozenset[str], span: str = LIVE
    ) -> Address:
        """Take what a board knows; anything else in the query is passed over.

        Raises:
            WrongAddressError: A parameter is given twice or is too long.
        """
        given: dict[str, str] = {}
        for name, value in parameters:
            if name not in known or not value:
                continue
            if name in given:
                message = f"The address has {name} twice."
                raise WrongAddressError(message)
            if len(value) > _LONGEST:
                message = f"The value of {name} in the address is too long ({len(value):,} characters)."
                raise WrongAddressError(message)
            given[name] = value
        return cls(path, dict(sorted(given.items())), span)

    @property
    def root(self) -> str:
        """The way from this address to the server's root, relative, so that it holds under any path of a proxy."""
        return "../" * (len(self.path) - 1) or "./"

    def text(self, name: str) -> str:
        """A parameter; "" without it."""
        return self.given.get(name, "")

    def one_of(self, name: str, allowed: Iterable[str]) -> str:
        """A parameter that can only be one of some words; "" without it.

        Raises:
            WrongAddressError: It is something else.
        """
        value = self.text(name)
        choices = list(allowed)
        if value and value not in choices:
            message = f"{name} cannot be {words.cut(value, 60)}: it may be {', '.join(choices)}."
            raise WrongAddressError(message)
        return value

    def range(self, now: datetime) -> Range:
        """The span that `range`, or `from` and `to`, ask for.

        Raises:
            WrongAddressError: They make no span.
        """
        if self.text("from") or self.text("to"):
            begin = _moment("from", self.text("from")) if self.text("from") else None
            end = _moment("to", self.text("to")) if self.text("to") else now
            begin = begin or end - RANGES["24h"]
            if not begin < end or end - begin > _LONGEST_SPAN:
                message = "The time range is empty, or longer than three years: from must lie before to."
                raise WrongAddressError(message)
            return Range("", begin, end)
        name = self.one_of("range", RANGES) or self.span
        return Range(name, now - RANGES[name], now)

    def link(self, *path: str, **parameters: str | None) -> str:
        """A relative URL to another place of the page.

        Args:
            path: Its segments; names as they are.
            parameters: Its query; empty values are left out, "_" at the end of a name too.
        """
        query = urlencode({name.rstrip("_"): value for name, value in parameters.items() if value})
        return self.root + "/".join(map(_segment, path)) + (f"?{query}" if query else "")

    def here(self, **parameters: str | None) -> str:
        """A relative URL to this place with some parameters changed; None removes one."""
        changed = {name.rstrip("_"): value for name, value in parameters.items()}
        kept = {name: value for name, value in {**self.given, **changed}.items() if value}
        # A reference of only "?…" keeps the whole path; an empty one would keep the query as well.
        if kept:
            return f"?{urlencode(kept)}"
        return self.link(*self.path)


def segments(path: str) -> tuple[str, ...]:
    """The decoded segments of a URL's path as it was sent: a name may contain a slash, written %2F."""
    stripped = path.removeprefix("/")
    if stripped:
        return tuple(unquote(part, errors="replace") for part in stripped.split("/"))
    return ()


def _segment(name: str) -> str:
    return quote(words.key_of(name), safe="")


def _moment(name: str, text: str) -> datetime:
    found: datetime | None
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        found = None
    if found is None or not 1970 < found.year < 2200:
        message = f"{name} must be a time like 2026-11-20T14:00Z, not {words.cut(text, 60)}."
        raise WrongAddressError(message)
    return found
