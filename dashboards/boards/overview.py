"""All groups, the worst first: which of them need somebody, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from dashboards import format as words
from dashboards.boards.alerts import firing
from dashboards.format import Row
from dashboards.page.board import HEALTH, Board, View, by_group, key, rows_of

__all__ = ["BOARD"]

_MOST_DECISIONS: Final = 10

_SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "lag": ("lag_total", True),
    "behind": ("time_behind_seconds_max", True),
    "members": ("members", True),
    "partitions": ("partitions", True),
    "imbalance": ("imbalance", True),
    "rebalanced": ("last_decision_time", True),
    "group": ("group_id", False),
}
"""Column of groups.sql, and whether the largest comes first, by the value of `sort`."""


def _fill(view: View) -> Mapping[str, Any]:
    show, text = view.address.one_of("show", HEALTH.values()), view.address.text("q").strip()
    columns = view.columns("groups")
    sort, _ = _SORTS.get(view.address.text("sort"), ("health", True))
    everyone = rows_of(columns, *{"cluster", "group_id", "health", sort})
    for place, group in enumerate(everyone):
        group["place"] = place
    found = by_group(view.rows("search", text=text.lower())) if text else None
    wanted = [group for group in view.owned(everyone) if found is None or key(group) in found]
    counts = Counter(HEALTH[group["health"]] for group in wanted)
    listed = view.ordered([group for group in wanted if not show or HEALTH[group["health"]] == show], _SORTS)
    places = pa.array([group["place"] for group in listed[: view.most]], pa.int64())
    since = by_group(view.rows("since"))
    topics = sum(text.lower() in row["topic"].lower() for row in view.rows("topics", topic=None)) if text else 0
    return {
        "counts": zip(HEALTH, view.chips("show", HEALTH.values(), counts), strict=True),
        "owners": view.owner_chips(group["group_id"] for group in everyone),
        "alerts": None if view.everything else firing(view, None),
        "rows": [(row, _said(row, view, since.get(key(row)))) for row in columns.take(places).to_pylist()],
        "hidden": len(listed) - view.most,
        "listed": len(listed),
        "of": len(everyone),
        "q": text,
        "topics": topics,
        "decisions": view.rows("rebalances", most=_MOST_DECISIONS),
        "unseen": _unseen(view),
    }


def _said(row: Row, view: View, since: Row | None) -> list[str]:
    """What is said of a row of groups.sql; never empty."""
    return [reason.text for reason in words.reasons(row, view.clock, since)] or [words.calm(row)]


def _unseen(view: View) -> str:
    totals: Counter[str] = Counter()
    for row in view.rows("unseen"):
        if view.cluster in {None, row["cluster"]}:
            totals[row["kind"]] += row["number"] or 0
    said = [f"{words.number(totals[kind])} {text}" for kind, text in _UNSEEN.items() if totals[kind]]
    return f"Not included: {'; '.join(said)}." if said else ""


_UNSEEN: Final = {
    "quarantine": "records could not be decoded (table quarantine)",
    "gap": "ranges were deleted before we read them (table gaps)",
}

BOARD = Board(
    path=(),
    template="overview.html.j2",
    fill=_fill,
    title="Evenkeel",
    word="Groups",
    parameters=frozenset({"q", "show", "owner", "sort", "most"}),
)
