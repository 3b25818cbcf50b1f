"""All groups, the worst first: which of them need somebody, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from dashboards import format as words
from dashboards.boards.alerts import firing
from dashboards.boards.itself import overview
from dashboards.format import Row
from dashboards.page.board import HEALTH, Board, View, by_group, key, rows_of, total

_MOST_DECISIONS: Final = 10

# Fewer groups of one pattern are shown one by one.
_FOLD_FROM: Final = 3

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

_PLACES: Final = ("topic", "client", "host")

# Parts of names that a program made up for one run.
_MADE_UP: Final = (
    ("<uuid>", re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")),
    ("<hex>", re.compile(r"(?<![0-9A-Za-z])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{12,}(?![0-9A-Za-z])")),
    ("<time>", re.compile(r"\d{4}-?\d\d-?\d\d[T_ -]?\d\d[:.-]?\d\d(?:[:.-]?\d\d)?(?:[.,]\d+)?Z?")),
    ("<number>", re.compile(r"\d{4,}")),
)

# Longer names are not searched for patterns: nobody makes up 32 KB.
_LONGEST_PATTERN: Final = 249


@lru_cache(maxsize=2**18)
def pattern_of(group: str) -> str:
    """A group id with the parts that were made up for one run as `<uuid>`, `<hex>`, `<time>`, `<number>`."""
    if len(group) > _LONGEST_PATTERN:
        return group
    for word, parts in _MADE_UP:
        group = parts.sub(word, group)
    return group


def _fill(view: View) -> Mapping[str, Any]:
    show, pattern = view.address.one_of("show", HEALTH.values()), view.address.text("pattern")
    text = view.address.text("q").strip()
    columns = view.columns("groups")
    sort, _ = _SORTS.get(view.address.text("sort"), ("health", True))
    everyone = rows_of(columns, *{"cluster", "group_id", "health", "lag_total", "members", sort})
    for place, group in enumerate(everyone):
        group["place"] = place
    places = _places(view, text.lower()) if text else None
    wanted = [
        group
        for group in view.owned(everyone)
        if (places is None or key(group) in places) and (not pattern or pattern_of(group["group_id"]) == pattern)
    ]
    counts = Counter(HEALTH[group["health"]] for group in wanted)
    listed = view.ordered([group for group in wanted if not show or HEALTH[group["health"]] == show], _SORTS)
    rows, since = _folded(listed, pattern), by_group(view.rows("since"))
    shown = rows[: view.most]
    shown_places = pa.array([row["place"] for row in shown if "place" in row], pa.int64())
    whole = iter(columns.take(shown_places).to_pylist())
    topics = sum(text.lower() in row["topic"].lower() for row in view.rows("topics", topic=None)) if text else 0
    return {
        "counts": zip(HEALTH, view.chips("show", HEALTH.values(), counts), strict=True),
        "owners": view.owner_chips(group["group_id"] for group in everyone),
        "alerts": None if view.everything else firing(view, None),
        "fleet": overview(view) if len(view.clusters) > 1 and not view.everything else None,
        "rows": [
            (row, _fold(row["groups"])) if "groups" in row else _group(next(whole), view, since, places or {})
            for row in shown
        ],
        "hidden": len(rows) - view.most,
        "listed": len(listed),
        "of": len(everyone),
        "q": text,
        "pattern": pattern,
        "topics": topics,
        "decisions": view.rows("rebalances", most=_MOST_DECISIONS),
        "unseen": _unseen(view),
    }


def _places(view: View, text: str) -> dict[tuple[str, str], dict[str, str]]:
    """By group the names in which a text was found, by where they are."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in view.rows("search", text=text):
        found.setdefault(key(row), {})[row["place"]] = row["found"]
    return found


def _folded(groups: Sequence[Row], unfolded: str) -> list[Row]:
    """The groups, with those of one pattern as one row at the place of the first of them."""
    by_pattern: dict[tuple[str, str], list[Row]] = {}
    for group in groups:
        by_pattern.setdefault((group["cluster"], pattern_of(group["group_id"])), []).append(group)
    rows: list[Row] = []
    for group in groups:
        pattern = pattern_of(group["group_id"])
        alike = by_pattern[group["cluster"], pattern]
        if pattern in {unfolded, group["group_id"]} or len(alike) < _FOLD_FROM:
            rows.append(group)
        elif alike[0] is group:
            rows.append({"group_id": pattern, "cluster": group["cluster"], "groups": alike})
    return rows


def _fold(groups: Sequence[Row]) -> dict[str, Any]:
    """What a row says of groups of one pattern."""
    counts = Counter(group["health"] for group in groups)
    said = ", ".join(f"{words.number(counts[health])} {word}" for health, word in HEALTH.items() if counts[health])
    return {
        "health": max(counts),
        "says": [f"{words.number(len(groups))} groups of one pattern: {said}"],
        "lag": total(groups, "lag_total"),
        "members": sum(group["members"] or 0 for group in groups),
    }


def _group(
    row: Row,
    view: View,
    since: Mapping[tuple[str, str], Row],
    places: Mapping[tuple[str, str], Mapping[str, str]],
) -> tuple[Row, dict[str, Any]]:
    """A row of groups.sql, and what is said of it; `places` are where the searched text was found."""
    found = places.get(key(row), {})
    where = next((f"{place} {words.cut(found[place])}" for place in _PLACES if place in found), "")
    return row, {
        "health": row["health"],
        "says": [reason.text for reason in words.reasons(row, view.clock, since.get(key(row)))] or [words.calm(row)],
        "where": "" if "group" in found else where,
        "behind": words.behind(row["time_behind_seconds_min"], row["time_behind_seconds_max"]),
    }


def _unseen(view: View) -> str:
    totals: Counter[str] = Counter()
    for row in view.rows("unseen"):
        if view.cluster in {None, row["cluster"]}:
            totals[row["kind"]] += row["number"] or 0
    said = [f"{words.number(totals[kind])} {text}" for kind, text in _UNSEEN.items() if totals[kind]]
    if said:
        return f"Not included: {'; '.join(said)}."
    return ""


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
    parameters=frozenset({"q", "show", "owner", "sort", "most", "pattern"}),
)
