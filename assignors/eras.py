"""A broker's assignor by release: which behaviour it had, and how to call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from assignors.context import spend
from assignors.exceptions import CannotTell, UnknownLibrary
from assignors.strategy import JAVA, Library, Release, parse_library


class _Group(Protocol):
    @property
    def least_work(self) -> int: ...


_G = TypeVar("_G", bound=_Group)
_R = TypeVar("_R")

Eras = tuple[tuple[Release, Callable[[_G], _R]], ...]
"""The behaviours and the first release of each, the newest first."""


def assign_as_of(eras: Eras[_G, _R], group: _G, release: Library | str | None, name: str) -> _R:
    """Recompute what a broker of a release decided.

    Args:
        eras: The assignor's behaviours.
        group: Its input.
        release: The broker's release, as a value or as text ("4.0.1"); None means the newest.
        name: The assignor's name, for errors.

    Raises:
        UnknownLibrary: The release cannot be parsed, or belongs to another library.
        CannotTell: The release is older than the first that is recomputed. Or as the behaviour of its era, as all
            other errors.
    """
    broker = parse_library(release) if isinstance(release, str) else release or Library(JAVA)
    if broker.name != JAVA:
        message = f"{broker} is not a Kafka release: give one such as 4.0.1."
        raise UnknownLibrary(message)
    for since, recompute in eras:
        if broker.release is None or broker.release >= since:
            spend(group.least_work)
            return recompute(group)
    first = ".".join(map(str, eras[-1][0]))
    reason = f"{name!r} of brokers before {first} is not recomputed"
    raise CannotTell(reason)
