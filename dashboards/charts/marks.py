"""Marks on charts: what people, or alerts, have noted at a time. Every kind of chart can have them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.address import Range

__all__ = ["marked"]

# More flags than this hide the chart under them; the oldest are left out of the drawing and counted in the sentence.
_MOST: Final = 50

# The board that made a mark has its whole text.
_LONGEST: Final = 120


def marked(plot: dict[str, Any], marks: Iterable[tuple[datetime, str]], span: Range) -> dict[str, Any]:
    """A chart with marks: a line with a flag each, whose text is shown where the cursor comes near.

    Args:
        plot: Values of a chart of any kind.
        marks: Times and texts, in any order; those outside of the span are left out.
        span: What the chart shows.
    """
    found = sorted((time, text) for time, text in marks if span.begin <= time <= span.end)
    if not found:
        return plot
    drawn = [[int(time.timestamp()), words.cut(text, _LONGEST)] for time, text in found[-_MOST:]]
    told = words.counted(len(found), "mark")
    return {**plot, "marks": drawn, "told": f"{plot['told']}; {told}, the last: {drawn[-1][1]}"}
