"""What may reach a terminal: names come from records and from brokers, and anybody may have written them."""

from __future__ import annotations

__all__ = ["printable", "visible"]

# A group id can have 32 KB. A line that long is read by nobody, and both ends of a name tell it from its neighbours.
_LONGEST = 200


def printable(text: str) -> str:
    r"""A text whose characters that move the cursor, colour or turn lines around read `\n`, `\x1b`, `\u202e`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def visible(text: str, longest: int = _LONGEST) -> str:
    """A text as `printable` gives it, cut in the middle: for log lines, reasons and messages.

    Args:
        text: Any text, unpaired surrogates too.
        longest: Characters at the most, from 3 up.
    """
    # (What was written out is longer than before.)
    return _cut(printable(_cut(text, longest)), longest)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
