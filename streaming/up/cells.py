"""The door through which everything goes that a record or a broker has written before a terminal shows it."""

from __future__ import annotations

from rich.text import Text

from streaming.terminal import printable

__all__ = ["cell", "lines"]

_WIDTH = 48
"""Enough for the names that people give; of longer ones both ends tell more than the middle."""

_READ = 500
"""Of a longer value no more is looked at: a name may have 32,000 characters."""

_LINE = 1_000
"""Of a line outside a table: longer ones would push the tables off the screen."""


def cell(value: object, spec: str = "", style: str = "") -> Text:
    """Any value as text for one cell: nothing in it is markup, control characters are visible, NULL is a dash.

    Args:
        value: The value.
        spec: Format, as in an f-string; a value that it does not fit is shown as it is.
        style: Style of the text.
    """
    if value is None:
        return Text("-", style=style)
    try:
        plain = format(value, spec)
    except (TypeError, ValueError):
        plain = str(value)
    visible = printable(plain[:_READ])
    if len(visible) > _WIDTH:
        visible = f"{visible[: _WIDTH // 2 - 1]}…{visible[-_WIDTH // 2 :]}"
    return Text(visible, style=style)


def lines(text: str, style: str = "") -> Text:
    """Sentences, one a line, as `cell` shows a value, but longer."""
    return Text("\n".join(printable(line[:_LINE]) for line in text.splitlines()), style=style)
