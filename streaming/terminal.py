"""Text for people: names that are safe to print, since anybody may have written them, numbers and spans of time.

Also what a program does whose output nobody reads any more.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# A group id can have 32 KB. Nobody reads a line that long, and both ends of a name distinguish it from others.
_LONGEST = 200


def printable(text: str) -> str:
    r"""A text with characters that move the cursor, colour or reorder lines written as `\n`, `\x1b`, `\u202e`."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def say(console: Console, sentence: str, style: str | None = None) -> None:
    """Print a sentence that may hold any text: escaped, without markup, on one line."""
    console.print(printable(sentence), style=style, highlight=False, markup=False, soft_wrap=True)


def visible(text: str, longest: int = _LONGEST) -> str:
    """A text as `printable` returns it, shortened in the middle: for log lines, reasons and messages.

    Args:
        text: Any text, unpaired surrogates too.
        longest: Characters at the most, from 3 up.
    """
    # Cut again: escaped characters take more room.
    return _cut(printable(_cut(text, longest)), longest)


def age(span: timedelta) -> str:
    """A span in one unit or two: "40 s", "3 min", "2 h 10 min", "3 days"."""
    total = max(0, int(span.total_seconds()))
    if total < 120:
        return f"{total} s"
    if total < 7200:
        return f"{total // 60} min"
    if total < 172_800:
        hours, minutes = divmod(total // 60, 60)
        if minutes:
            return f"{hours} h {minutes} min"
        return f"{hours} h"
    return f"{total // 86_400} days"


def counted(number: int, noun: str) -> str:
    """A number with its noun, which gets an s unless there is one: "1 partition", "12,400 partitions"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def read_by_nobody() -> None:
    """Let what is still printed, also by Python's own flush at the end, go nowhere: its reader has gone for good."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
