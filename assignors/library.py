"""A client library and its release: a value with a text form and an order, to name a group's leader."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assignors.exceptions import UnknownLibrary

__all__ = ["CUSTOM", "JAVA", "KAFKA_PYTHON", "LIBRARIES", "UNKNOWN", "Library", "Release", "parse_library"]

Release = tuple[int, ...]
"""A release as numbers: 3.7.1 is (3, 7, 1); a shorter one is older than a longer one with the same start."""

JAVA = "java"
KAFKA_PYTHON = "kafka-python"
UNKNOWN = "unknown"
CUSTOM = "custom"
"""A user's own strategy, whichever library led; it has no text form."""

# Libraries whose range and roundrobin were read in the source (the results are in the table of eras), and "unknown" for
# all others.
LIBRARIES = (JAVA, "librdkafka", KAFKA_PYTHON, "aiokafka", "sarama", "franz-go", UNKNOWN)

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
