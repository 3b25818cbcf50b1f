"""Text that is safe to print on a terminal: names come from records and brokers, and anybody may have written them."""

from __future__ import annotations

# A group id can have 32 KB. Nobody reads a line that long, and both ends of a name distinguish it from others.
_LONGEST = 200


def printable(text: str) -> str:
    r"""A text with characters that move the cursor, colour or reorder lines written as `\n`, `\x1b`, `\u202e`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def visible(text: str, longest: int = _LONGEST) -> str:
    """A text as `printable` returns it, shortened in the middle: for log lines, reasons and messages.

    Args:
        text: Any text, unpaired surrogates too.
        longest: Characters at the most, from 3 up.
    """
    # (Cut again: escaped characters take more room.)
    return _cut(printable(_cut(text, longest)), longest)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
