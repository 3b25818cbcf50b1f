"""Spans of time: what is in memory is taken from there, anything older from the lake."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from dashboards.boards.address import Range
from dashboards.boards.board import Row, View

__all__ = ["decisions_within", "in_memory", "ranges"]

# More decisions in a span are left out, the oldest first; a month of a cluster that works has fewer.
_MOST: Final = 5_000

# The beginning of the past in memory moves on while the page is looked at.
_SLACK = timedelta(minutes=2)


def in_memory(view: View, span: Range) -> bool:
    """Whether all of a span is held in memory."""
    return span.begin >= view.now - view.lake.past - _SLACK


def decisions_within(view: View, span: Range, cluster: str | None, group: str | None) -> list[Row] | None:
    """Decisions of a span as rows of rebalances.sql, the newest first; None while they are still being read."""
    begin = span.begin.replace(second=0, microsecond=0)
    given = {"cluster": cluster, "group_id": group, "since": begin, "most": _MOST}
    rows = view.ask("rebalances", **given) if in_memory(view, span) else view.archive.ask("rebalances", **given)
    return None if rows is None else [row for row in rows if span.begin <= row["record_time"] <= span.end]


def ranges(view: View, span: Range, names: Iterable[str]) -> dict[str, Any]:
    """Values of the macro `ranges`."""
    return {
        "choices": [
            {
                "word": name,
                "chosen": name == span.name,
                "href": view.address.here(range=name, from_=None, to=None),
            }
            for name in names
        ],
        "from": f"{span.begin:%Y-%m-%dT%H:%M}",
        "to": f"{span.end:%Y-%m-%dT%H:%M}",
        "absolute": not span.name,
        "kept": {name: value for name, value in view.address.given.items() if name not in {"range", "from", "to"}},
    }
