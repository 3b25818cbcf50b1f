"""Text of others (names, records, errors) as it may stand in a log line, a reason or a message."""

from __future__ import annotations

__all__ = ["visible"]

# A group id can have 32 KB. A line that long is read by nobody, and both ends of a name tell it from its neighbours.
_LONGEST = 200


def visible(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, cut in the middle, with everything written out that a terminal would act on or not show.

    Args:
        text: Any text, unpaired surrogates too.
        longest: Characters kept of it. (One that is written out takes up to ten.)
    """
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
