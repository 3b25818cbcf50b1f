"""What may reach a terminal: names come from records and from brokers, and anybody may have written them."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""A text whose characters that move the cursor, colour or turn lines around read `\n`, `\x1b`, `\u202e`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
