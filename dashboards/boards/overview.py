"""All groups, the worst first: which of them need somebody, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.decisions import decision_rows
from dashboards.boards.parts.firing import firing
from dashboards.format import Row
from dashboards.page.board import HEALTH, Board, View

__all__ = ["BOARD", "pattern_of"]

# People scan a hundred rows, the worst first; a thousand still scroll well, and make a page of half a megabyte.
_SHOWN: Final = ("100", "1000")

_MOST_DECISIONS = 10

# Fewer groups of one pattern are shown one by one.
_FOLD_FROM = 3

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
_LONGEST_PATTERN = 249


def pattern_of(group: str) -> str:
    """A group id with the parts that were made up for one run as `<uuid>`, `<hex>`, `<time>`, `<number>`."""
    if len(group) > _LONGEST_PATTERN:
        return group
    for word, parts in _MADE_UP:
        group = parts.sub(word, group)
    return group


def _fill(view: View) -> Mapping[str, Any]:
    address = view.address
    show = address.one_of("show", HEALTH.values())
    sort = address.one_of("sort", _SORTS)
    most = int(address.one_of("most", _SHOWN) or _SHOWN[0])
    everyone = view.groups(view.cluster)
    found = _searched(view, everyone)
    owner = address.text("owner")
    owners = Counter(view.owner(group["group_id"]) for group in everyone) if view.owners else Counter[str]()
    wanted = [
        group
        for group in everyone
        if (found is None or (group["cluster"], group["group_id"]) in found)
        and (not owner or view.owner(group["group_id"]) == owner)
    ]
    counted = Counter(group["health"] for group in wanted)
    listed = [group for group in wanted if not show or HEALTH[group["health"]] == show]
    if sort:
        column, largest = _SORTS[sort]
        listed.sort(key=_sortable(column), reverse=largest)
    since = {(row["cluster"], row["group_id"]): row for row in view.ask("since", since=view.since)}
    clusters = sorted({group["cluster"] for group in view.groups()})
    rows = _folded(listed, address.text("pattern"))
    decisions = view.ask("rebalances", cluster=view.cluster, group_id=None, since=view.since, most=_MOST_DECISIONS)
    filtered = bool(show or owner or address.text("q") or address.text("pattern") or view.cluster)
    return {
        "counts": [
            {
                "health": health,
                "n": counted[health],
                "word": word,
                "chosen": word == show,
                "href": address.here(show=None if word == show else word),
            }
            for health, word in HEALTH.items()
        ],
        "clusters": _choices(view, "cluster", clusters, view.cluster) if len(clusters) > 1 else [],
        "owners": _choices(view, "owner", sorted(name for name in owners if name), owner) if len(owners) > 1 else [],
        "sorts": {word: address.here(sort=None if word == sort else word) for word in _SORTS},
        "sort": sort,
        "alerts": firing(view, view.cluster, None) if not filtered else None,
        "rows": [
            _fold(row, view) if "pattern" in row else _group(row, view, since, found, many=len(clusters) > 1)
            for row in rows[:most]
        ],
        "hidden": max(0, len(rows) - most),
        "more": address.here(most=_SHOWN[1]) if most < int(_SHOWN[1]) else "",
        "listed": len(listed),
        "of": len(everyone),
        "q": address.text("q"),
        "topics": _topics(view),
        "pattern": address.text("pattern"),
        "everything": address.link(),
        "filtered": filtered,
        "owned": bool(view.owners),
        "decisions": decision_rows(decisions, view, with_group=True),
        "unseen": _unseen(view),
    }


def _sortable(column: str) -> Callable[[Row], tuple[bool, Any]]:
    """Rows without a value come last where the largest is first."""
    return lambda row: (row[column] is not None, row[column] if row[column] is not None else 0)


def _choices(view: View, name: str, values: Sequence[str], chosen: str | None) -> list[dict[str, Any]]:
    return [
        {
            "word": value,
            "chosen": value == chosen,
            "href": view.address.here(**{name: None if value == chosen else value}),
        }
        for value in values
    ]


def _searched(view: View, groups: Sequence[Row]) -> dict[tuple[str, str], dict[str, str]] | None:
    """Groups that `q` and `pattern` leave, with the names that were found; None for all of them."""
    text, pattern = view.address.text("q").strip().lower(), view.address.text("pattern")
    if not text and not pattern:
        return None
    found: dict[tuple[str, str], dict[str, str]] = {}
    if text:
        for row in view.ask("search", cluster=view.cluster, text=text):
            found.setdefault((row["cluster"], row["group_id"]), {})[row["place"]] = row["found"]
    else:
        found = {(group["cluster"], group["group_id"]): {} for group in groups}
    return {key: places for key, places in found.items() if not pattern or pattern_of(key[1]) == pattern}


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
            rows.append({"pattern": pattern, "cluster": group["cluster"], "groups": alike})
    return rows


def _fold(row: Row, view: View) -> dict[str, Any]:
    groups = row["groups"]
    counted = Counter(group["health"] for group in groups)
    said = ", ".join(f"{words.number(counted[health])} {word}" for health, word in HEALTH.items() if counted[health])
    lags = [group["lag_total"] for group in groups if group["lag_total"] is not None]
    return {
        "fold": row["pattern"],
        "key": f"{row['cluster']}/{row['pattern']}",
        "href": view.address.here(pattern=row["pattern"]),
        "health": max(counted),
        "reason": f"{words.number(len(groups))} groups of one pattern: {said}",
        "lag": sum(lags) if lags else None,
        "members": sum(group["members"] or 0 for group in groups),
    }


def _group(
    row: Row,
    view: View,
    since: Mapping[tuple[str, str], Row],
    found: Mapping[tuple[str, str], Mapping[str, str]] | None,
    *,
    many: bool,
) -> dict[str, Any]:
    key = row["cluster"], row["group_id"]
    said = [reason.text for reason in words.reasons(row, view.clock, since.get(key))] or [words.calm(row)]
    places = (found or {}).get(key, {})
    where = next((f"{place} {words.cut(places[place])}" for place in _PLACES if place in places), "")
    return {
        "fold": "",
        "key": f"{row['cluster']}/{words.key_of(row['group_id'])}",
        "href": view.address.link("groups", row["group_id"], cluster=row["cluster"] if many else None),
        "cluster": row["cluster"] if many else "",
        "name": row["group_id"],
        "owner": view.owner(row["group_id"]),
        "where": "" if "group" in places else where,
        "health": row["health"],
        "reason": said[0],
        "more": len(said) - 1,
        "all_reasons": "\n".join(said),
        "lag": row["lag_total"],
        "behind": behind(row),
        "members": row["members"],
        "partitions": row["partitions"],
        "imbalance": row["imbalance"],
        "strategy": row["strategy"],
        "decided": view.clock.time(row["last_decision_time"], exact=False),
    }


def behind(row: Row) -> str:
    """The time that the oldest unread record has waited, as bounds."""
    low, high = row["time_behind_seconds_min"], row["time_behind_seconds_max"]
    if low is None and high is None:
        return words.DASH
    if not high and not low:
        return "0 s"
    return words.bounds(low, high)


def _topics(view: View) -> dict[str, str] | None:
    """How many topics have the searched text in their name, and where they are; None where none has."""
    text = view.address.text("q").strip()
    if not text:
        return None
    named = sum(text.lower() in row["topic"].lower() for row in view.ask("topics", cluster=view.cluster, topic=None))
    href = view.address.link("topics", name=text, cluster=view.cluster)
    return {"said": words.counted(named, "topic"), "href": href} if named else None


def _unseen(view: View) -> str:
    totals: Counter[str] = Counter()
    for row in view.ask("unseen"):
        if view.cluster in {None, row["cluster"]}:
            totals[row["kind"]] += row["number"] or 0
    said = []
    if totals["quarantine"]:
        said.append(f"{words.number(totals['quarantine'])} records could not be decoded (table quarantine)")
    if totals["gap"]:
        said.append(f"{words.number(totals['gap'])} ranges were deleted before we read them (table gaps)")
    return f"Not included: {'; '.join(said)}." if said else ""


BOARD = Board(
    path=(),
    template="overview.html.j2",
    fill=_fill,
    title="Evenkeel",
    word="Groups",
    parameters=frozenset({"q", "show", "owner", "sort", "most", "pattern"}),
)
