"""Numbers with their nouns: "1 partition", "12,400 partitions"."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun, which gets an s unless there is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
