"""Topics of the cluster: partitions, rates, sizes, and who reads them, or that nobody does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.itself import size
from dashboards.boards.parts.chips import chips, cluster_chips
from dashboards.format import Row
from dashboards.page.address import WrongAddressError
from dashboards.page.board import Board, View

__all__ = ["BOARD", "NOBODY", "READ", "UNKNOWN", "produced_why", "reading_of", "unread_why"]

# People scan a hundred rows; the next hundred are a link away.
_PAGE: Final = 100

# Pages that an address may ask for: a million topics, ten times what Kafka is known to bear.
_MOST_PAGES: Final = 10_000

# Longer names are cut in the column `readers`, so that they name no group.
_LONGEST_READER: Final = 999

# Readers that are named beside a topic.
_NAMED: Final = 2

READ, NOBODY, UNKNOWN = "read", "nobody", "unknown"

_SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "topic": ("topic", False),
    "partitions": ("partitions", True),
    "records": ("records_max", True),
    "size": ("log_bytes", True),
    "produced": ("produced_per_second", True),
    "readers": ("groups", True),
    "lag": ("lag_total", True),
}
"""Column of topics.sql, and whether the largest comes first, by the value of `sort`."""

_UNREAD: Final[Mapping[str, str]] = {
    "filtered": "the configuration leaves out groups, which may read it",
    "no_right": "the probe may not describe all groups, so some may be hidden",
    "share_groups": "there are share groups, which commit no offsets",
    "undescribed": "the topics of a group were not known at this look",
}

_PRODUCED: Final[Mapping[str, str]] = {
    "first_look": "the rate comes with the second look, a heartbeat after the first",
    "recreated": "another topic of this name",
    "missing_rounds": "rounds are missing since the look before",
    "offset_unknown": "the end of a partition is not known, or went back",
}


def reading_of(row: Row) -> str:
    """READ, NOBODY or UNKNOWN, for a row of topics.sql."""
    if row["groups"]:
        return READ
    return NOBODY if row["read_by_nobody"] else UNKNOWN


def unread_why(row: Row) -> str:
    """Why it is not known whether somebody reads a topic; "" where it is."""
    if reading_of(row) != UNKNOWN:
        return ""
    reason = row["read_by_nobody_reason"]
    return _UNREAD.get(reason or "", (reason or "not looked at yet").replace("_", " "))


def produced_why(row: Row) -> str:
    """Why the rate of a topic is not known; "" where it is."""
    if row["produced_per_second"] is not None:
        return ""
    if row["round_time"] is None:
        return "the probe does not look at this topic (probe.cluster_topics, filters, or a missing right)"
    reason = row["produced_reason"]
    return _PRODUCED.get(reason or "", (reason or "").replace("_", " "))


def _page(text: str) -> int:
    if not text:
        return 1
    if not (text.isascii() and text.isdigit() and len(text) < 7 and 1 <= int(text) <= _MOST_PAGES):
        message = f"page must be a number from 1 to {_MOST_PAGES:,}, not {words.cut(text, 60)}."
        raise WrongAddressError(message)
    return int(text)


def _fill(view: View) -> Mapping[str, Any]:
    address = view.address
    read = address.one_of("read", (READ, NOBODY, UNKNOWN))
    sort = address.one_of("sort", _SORTS) or "topic"
    page = _page(address.text("page"))
    text = address.text("name").strip().lower()
    everything = view.ask("topics", cluster=view.cluster, topic=None)
    named = [row for row in everything if not text or text in row["topic"].lower()]
    counts = Counter(map(reading_of, named))
    found = [row for row in named if not read or reading_of(row) == read]
    column, largest = _SORTS[sort]
    if sort != "topic":
        known = sorted((r for r in found if r[column] is not None), key=lambda r: r[column], reverse=largest)
        found = [*known, *(row for row in found if row[column] is None)]
    pages = max(1, -(-len(found) // _PAGE))
    page = min(page, pages)
    shown = found[(page - 1) * _PAGE : page * _PAGE]
    many = len(view.ask("rounds")) > 1
    return {
        "clusters": cluster_chips(view),
        "reads": chips(view, "read", (READ, NOBODY, UNKNOWN), read, counts),
        "name": address.text("name"),
        "kept": {name: value for name, value in address.given.items() if name not in {"name", "page"}},
        "filtered": bool(read or text or view.cluster),
        "everything": address.link("topics"),
        "sums": _sums(found),
        "sorts": {word: address.here(sort=None if word == "topic" else word, page=None) for word in _SORTS},
        "sort": sort,
        "rows": [_row(row, view) for row in shown],
        "number": len(found),
        "of": len(everything),
        "first": (page - 1) * _PAGE + 1,
        "pages": _turn(view, page, pages),
        "many_clusters": many,
    }


def _turn(view: View, page: int, pages: int) -> list[dict[str, Any]]:
    """Links to other pages; nothing where there is one."""
    if pages == 1:
        return []
    steps = {"first": 1, "previous": page - 1, "next": page + 1, "last": pages}
    return [
        {"word": word, "href": view.address.here(page=str(to)), "there": 1 <= to <= pages and to != page}
        for word, to in steps.items()
    ]


def _sums(rows: Sequence[Row]) -> list[dict[str, str]]:
    def known(column: str) -> list[Any]:
        return [row[column] for row in rows if row[column] is not None]

    rates, sizes = known("produced_per_second"), known("log_bytes")
    figures = (
        ("topics", words.number(len(rows)), ""),
        ("partitions", words.number(sum(known("partitions"))), ""),
        ("without a leader", words.number(sum(known("offline_partitions"))), "partitions that nobody can read now"),
        ("produced, /s", words.rate(sum(rates) if rates else None), f"of {len(rates):,} topics whose rate is known"),
        ("size", size(sum(sizes) if sizes else None), f"one copy, of {len(sizes):,} topics whose size is known"),
    )
    return [{"word": word, "value": value, "title": title, "before": ""} for word, value, title in figures]


def _row(row: Row, view: View) -> dict[str, Any]:
    names = row["readers"] or ()
    return {
        "key": f"{row['cluster']}/{words.key_of(row['topic'])}",
        "topic": row["topic"],
        "cluster": row["cluster"],
        "href": view.address.link("topics", row["topic"], cluster=row["cluster"]),
        "partitions": row["partitions"],
        "offline": row["offline_partitions"] or 0,
        "records": row["records_max"],
        "size": size(row["log_bytes"]),
        "produced": row["produced_per_second"],
        "produced_why": produced_why(row),
        "groups": row["groups"],
        "readers": [{"name": name, "href": _reader(name, row["cluster"], view)} for name in names[:_NAMED]],
        "more": row["groups"] - min(len(names), _NAMED),
        "read": reading_of(row),
        "since": view.clock.time(row["read_by_nobody_since"], exact=False) if row["read_by_nobody"] else "",
        "why": unread_why(row),
        "lag": row["lag_total"],
        "lag_unknown": row["lag_unknown"],
    }


def _reader(name: str, cluster: str, view: View) -> str:
    if len(name) > _LONGEST_READER:
        return view.address.link(q=name[:200], cluster=cluster)
    return view.address.link("groups", name, cluster=cluster)


BOARD = Board(
    path=("topics",),
    template="topics.html.j2",
    fill=_fill,
    title="Topics · Evenkeel",
    word="Topics",
    parameters=frozenset({"name", "read", "sort", "page"}),
)
