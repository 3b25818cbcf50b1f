"""The one way to a terminal for text that a record or a broker has written: escaped, without markup, shortened."""

from __future__ import annotations

from rich.text import Text

from streaming.terminal import printable

__all__ = ["cell", "lines"]

_WIDTH = 48
"""Enough for the names that people give; in a longer one both ends are more useful than the middle."""

_READ = 500
"""Characters read of a longer value: a name may have 32,000."""

_LINE = 1_000
"""Characters of a line outside a table: longer ones would push the tables off the screen."""


def cell(value: object, spec: str = "", style: str = "") -> Text:
    """Any value as text for one cell: no markup, control characters escaped, NULL as a dash.

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
    """Sentences, one per line, shown as `cell` shows a value, but longer."""
    return Text("\n".join(printable(line[:_LINE]) for line in text.splitlines()), style=style)
