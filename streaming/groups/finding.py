"""What a round finds of a group, before it is a column of `group_health`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Found", "some"]

# A finding is one line on a page and in an alert.
_NAMED = 3

# Topic names have up to 249 characters, member ids any number; a few words may stand behind a name.
_LONGEST = 300


class Found(NamedTuple):
    """A finding at one round.

    Attributes:
        name: As in `group_health.findings`.
        since: Round time or record time since when it holds, ms, as far as this round tells.
        detail: One line for people.
    """

    name: str
    since: int
    detail: str


def some(texts: Sequence[str]) -> str:
    """Join the first few, and count the others: "a, b, c and 2 more"."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(text[:_LONGEST] for text in texts[:_NAMED]) + more
