"""A strategy by who runs it: a client library or a broker, its release, and the eras of what it computes.

A library and its release are a value with a text form and an order. A strategy of clients has a table of eras for each
library (`Strategy`), one of brokers has eras by Kafka's releases (`assign_as_of`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from assignors.assignment import Assignment
from assignors.context import spend
from assignors.exceptions import CannotTell, UnknownLibrary
from assignors.model import Group, PartitionRacks, Recompute

Release = tuple[int, ...]
"""A release as numbers: 3.7.1 is (3, 7, 1); a shorter one is older than a longer one with the same start."""

JAVA = "java"
KAFKA_PYTHON = "kafka-python"
UNKNOWN = "unknown"
CUSTOM = "custom"
"""A user's own strategy, whichever library led; it has no text form."""

# Libraries whose strategies were read in the source (the results are in the table of eras), and "unknown" for all
# others.
LIBRARIES = (
    JAVA,
    "librdkafka",
    KAFKA_PYTHON,
    "aiokafka",
    "sarama",
    "franz-go",
    "kafka-go",
    "kafkajs",
    "@platformatic/kafka",
    "kafka-node",
    "kafka-php",
    "krafka",
    "sarama-cluster",
    UNKNOWN,
)

_RELEASE = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})(?:[.+_-]?[A-Za-z][A-Za-z0-9.+_-]*)?")


@dataclass(frozen=True, slots=True)
class Library:
    """A client library in one release; the release stands for its whole era, which behaves the same.

    Attributes:
        name: One of `LIBRARIES`.
        release: Release, or None for the newest known one.
    """

    name: str
    release: Release | None = None

    def __str__(self) -> str:
        if self.release is None:
            return self.name
        return f"{self.name}:{'.'.join(map(str, self.release))}"


def parse_library(text: str) -> Library:
    """Parse "java:3.7.1", "librdkafka:2.16", "kafka-python:3.0.12", "sarama", or "3.7.1", which means Java.

    Suffixes such as "-rc1" or "-ccs" are ignored.

    Raises:
        UnknownLibrary: The name is not one of `LIBRARIES`, or the release is not a release.
    """
    name, colon, release = text.strip().partition(":")
    if not colon and (matched := _RELEASE.fullmatch(name)):
        return Library(JAVA, _numbers(matched[1]))
    if name not in LIBRARIES:
        message = f"Library {text!r} is not known: use one of {', '.join(LIBRARIES)}, optionally with :RELEASE."
        raise UnknownLibrary(message)
    if not colon:
        return Library(name)
    if not (matched := _RELEASE.fullmatch(release)):
        message = f"The release of {text!r} cannot be read: write it as in java:3.7.1."
        raise UnknownLibrary(message)
    return Library(name, _numbers(matched[1]))


def _numbers(release: str) -> Release:
    return tuple(int(part) for part in release.split("."))


@dataclass(frozen=True, slots=True)
class Era:
    """A span of releases of one library in which a strategy behaves the same.

    Attributes:
        library: Name of the library.
        recompute: The behaviour; eras with the same function behave the same.
        since: First release of the era; for the first era, the first release with consumer groups.
        before: First release after it; None if it lasts.
    """

    library: str
    recompute: Recompute
    since: Release
    before: Release | None = None

    def holds(self, release: Release | None) -> bool:
        """Whether the release is in this era; None means the newest release, so the last era."""
        if release is None:
            return self.before is None
        return release >= self.since and (self.before is None or release < self.before)

    def __str__(self) -> str:
        since = f">= {'.'.join(map(str, self.since))}"
        before = "" if self.before is None else f", < {'.'.join(map(str, self.before))}"
        return f"{self.library} {since}{before}"


@dataclass(frozen=True, slots=True)
class Strategy:
    """An assignment strategy under its protocol name.

    Attributes:
        name: Protocol name in the group's record, for example "range".
        eras: Behaviours by library, each library's eras without gaps or overlaps; may be empty.
        otherwise: Reason of `CannotTell` for a library without an era.
        deterministic: Whether equal inputs give equal results; if not, a result that differs from the group's
            assignment proves nothing.
        gives_unsubscribed: Known libraries that may give a member, under this name, a topic to which it does not
            subscribe. While there is one, such an owner breaks no invariant.
    """

    name: str
    eras: tuple[Era, ...]
    otherwise: str
    deterministic: bool = True
    gives_unsubscribed: tuple[str, ...] = ()

    @property
    def custom(self) -> bool:
        """Whether it is a user's own, which gives the same result whichever library led."""
        return bool(self.eras) and self.eras[0].library == CUSTOM

    def era(self, library: Library | None) -> Era:
        """The era of a library; None means the newest Java.

        Raises:
            CannotTell: No era of this library is known.
        """
        wanted = Library(CUSTOM) if self.custom else library or Library(JAVA)
        for era in self.eras:
            if era.library == wanted.name and era.holds(wanted.release):
                return era
        raise CannotTell(self.otherwise)


def refusing(reason: str) -> Recompute:
    """The behaviour of an era that is not recomputed: CannotTell with this reason."""

    def refuse(_group: Group, _racks: PartitionRacks | None) -> Assignment:
        raise CannotTell(reason)

    return refuse


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
    reason = f"{name!r} of brokers before {first}, where the protocol was early access or a preview, is not recomputed"
    raise CannotTell(reason)
