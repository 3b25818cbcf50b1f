"""Spans of time: what is in memory is taken from there, anything older from the lake."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from dashboards.format import Row
from dashboards.page.board import View
from dashboards.spans import Range

__all__ = ["decisions_within", "in_memory", "left_out", "ranges", "whole_minutes", "within"]

# More decisions in a span are left out, the oldest first; a month of a cluster that works has fewer.
_MOST: Final = 5_000

# The beginning of the past in memory moves on while the page is looked at.
_SLACK = timedelta(minutes=2)


def in_memory(view: View, span: Range) -> bool:
    """Whether all of a span is held in memory."""
    return span.begin >= view.now - view.lake.past - _SLACK


def decisions_within(view: View, span: Range, cluster: str | None, group: str | None) -> list[Row] | None:
    """Decisions of a span as rows of rebalances.sql, the newest first; None while they are still being read."""
    rows = _decisions(view, span, cluster, group)
    return None if rows is None else [row for row in rows if span.begin <= row["record_time"] <= span.end]


def left_out(view: View, span: Range, cluster: str | None, group: str | None) -> str:
    """A sentence where `decisions_within` lacks the older part of its span; "" where it has everything."""
    rows = _decisions(view, span, cluster, group)
    if rows is None or len(rows) < _MOST:
        return ""
    oldest = view.clock.time(rows[-1]["record_time"])
    return f"Only the newest {_MOST:,} decisions are in the list, none before {oldest}; chart and sums have all."


def _decisions(view: View, span: Range, cluster: str | None, group: str | None) -> list[dict[str, Any]] | None:
    """The newest decisions since the beginning of a span, also those after its end."""
    begin = span.begin.replace(second=0, microsecond=0)
    given = {"cluster": cluster, "group_id": group, "since": begin, "most": _MOST}
    return view.ask("rebalances", **given) if in_memory(view, span) else view.archive.ask("rebalances", **given)


def whole_minutes(span: Range) -> Range:
    """A span with whole minutes at both ends, so that questions of the same minute are the same question."""
    end = span.end.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Range(span.name, span.begin.replace(second=0, microsecond=0), end)


def within(view: View, span: Range, query: str, **parameters: Any) -> list[dict[str, Any]] | None:
    """Rows of a query with `since` and `until`, from memory or the lake; None while they are still being read."""
    asked = whole_minutes(span)
    given = {**parameters, "since": asked.begin, "until": asked.end}
    return view.ask(query, **given) if in_memory(view, span) else view.archive.ask(query, **given)


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
