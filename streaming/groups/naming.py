"""How the text of a finding names topics and members: the first few, the rest counted."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["some"]

# A finding is one line on a page and in an alert.
_NAMED = 3

# Topic names have up to 249 characters, member ids any number; a few words may stand behind a name.
_LONGEST = 300


def some(texts: Sequence[str]) -> str:
    """Join the first few, and count the others: "a, b, c and 2 more"."""
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(text[:_LONGEST] for text in texts[:_NAMED]) + more
