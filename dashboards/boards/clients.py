"""Who runs what: client ids, hosts, libraries as far as they are known, protocols, and the groups of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from dashboards.format import Row
from dashboards.page.board import Board, View, fold, total

_UNKNOWN: Final = "unknown"

# Rows of clients.sql that are read; a cluster of ten thousand groups has some ten thousand.
_MOST: Final = 20_000

_SHOWN: Final = 200


def folded(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of clients.sql, one for each client id and host, those with most members first.

    Returns:
        Dicts with cluster, client_id, client_host, members, static_members, partitions, instance, rack, groups (rows),
        libraries and protocols.
    """

    def first(column: str) -> Any:
        return lambda alike: next((row[column] for row in alike if row[column]), None)

    found = fold(
        rows,
        ("cluster", "client_id", "client_host"),
        members=partial(total, column="members"),
        static_members=partial(total, column="static_members"),
        partitions=partial(total, column="partitions"),
        instance=first("instance"),
        rack=first("rack"),
        groups=list,
        libraries=lambda alike: list(dict.fromkeys(row["library"] for row in alike if row["library"])),
        protocols=lambda alike: list(dict.fromkeys(map(_protocol, alike))),
    )
    return sorted(found, key=lambda one: (-one["members"], one["client_id"] or "", one["client_host"] or ""))


def _protocol(row: Row) -> str:
    """How a row's group is coordinated, and with which strategy."""
    other = row["protocol_type"] if row["protocol_type"] not in {"consumer", row["group_type"]} else None
    return ", ".join(filter(None, (_kind(row), other, row["strategy"])))


def _kind(row: Row) -> str:
    return row["group_type"] or _UNKNOWN


def _family(row: Row) -> str:
    """The kind of a library alone: "java" of "java:3.5"; `unknown` is an answer."""
    return (row["library"] or _UNKNOWN).partition(":")[0]


def _fill(view: View) -> Mapping[str, Any]:
    static = view.address.one_of("static", ("yes", "no"))
    library, kind = view.address.text("library"), view.address.text("type")
    found = view.rows("clients", text=view.address.text("name").strip().lower(), most=_MOST)
    families, kinds = Counter(map(_family, found)), Counter(map(_kind, found))
    clients = folded(
        [
            row
            for row in found
            if (not library or _family(row) == library)
            and (not kind or _kind(row) == kind)
            and (not static or (row["static_members"] > 0) == (static == "yes"))
        ]
    )
    return {
        "families": view.chips("library", sorted(families), families),
        "kinds": view.chips("type", sorted(kinds), kinds),
        "statics": view.chips("static", ("yes", "no")),
        "led": view.rows("libraries"),
        "number": len(clients),
        "clients": clients[:_SHOWN],
        "left_out": max(0, found[0]["of_all"] - _MOST) if found else 0,
    }


BOARD = Board(
    path=("clients",),
    template="clients.html.j2",
    fill=_fill,
    title="Clients · Evenkeel",
    word="Clients",
    parameters=frozenset({"name", "library", "type", "static"}),
)
