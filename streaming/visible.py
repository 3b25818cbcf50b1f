"""Text of others (names, records, errors) as it may stand in a log line, a reason or a message."""

from __future__ import annotations

__all__ = ["visible"]

# A group id can have 32 KB. A line that long is read by nobody, and both ends of a name tell it from its neighbours.
_LONGEST = 200


def visible(text: str, longest: int = _LONGEST) -> str:
    """A text on one line, cut in the middle, with everything written out that a terminal would act on or not show.

    Args:
        text: Any text, unpaired surrogates too.
        longest: Characters at the most, from 3 up.
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in _cut(text, longest))
    # What was written out is longer.
    return _cut(shown, longest)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
