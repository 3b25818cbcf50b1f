"""A finding about a group at one round, before it goes into `group_health`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Found", "some"]

# A finding must fit on one line of the page and of an alert.
_NAMED = 3

# Topic names have up to 249 characters, and a few words may follow the name. Member ids have no limit.
_LONGEST = 300


class Found(NamedTuple):
    """A finding at one round.

    Attributes:
        name: As in `group_health.findings`.
        since: Round or record time since which it holds, ms, as far as this round can tell.
        detail: One line of text for people.
    """

    name: str
    since: int
    detail: str


def some(texts: Sequence[str]) -> str:
    """Join the first few and count the rest: "a, b, c and 2 more"."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(text[:_LONGEST] for text in texts[:_NAMED]) + more
