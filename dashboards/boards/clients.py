"""Who runs what: client ids, hosts, libraries as far as they are known, protocols, and the groups of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import chips, cluster_chips
from dashboards.format import Row
from dashboards.page.board import Board, View

__all__ = ["BOARD", "UNKNOWN", "folded", "library_of"]

UNKNOWN: Final = "unknown"

# Rows of clients.sql that are looked at; a cluster of ten thousand groups has some ten thousand.
_MOST: Final = 20_000

_SHOWN: Final = 200

# Groups that are named beside a client.
_NAMED: Final = 3


def library_of(row: Row) -> str:
    """What is known about a library: its kind and the first release that computes so; `unknown` is an answer."""
    return row["library"] or UNKNOWN


def family_of(library: str) -> str:
    """Its kind alone: "java" of "java:3.5"."""
    return library.partition(":")[0]


def folded(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of clients.sql, one for each client id and host, those with most members first.

    Returns:
        Dicts with cluster, client_id, client_host, members, static_members, partitions, instance, rack, groups (rows),
        libraries and protocols.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault(
            (row["cluster"], row["client_id"], row["client_host"]),
            {
                "cluster": row["cluster"],
                "client_id": row["client_id"],
                "client_host": row["client_host"],
                "members": 0,
                "static_members": 0,
                "partitions": None,
                "instance": None,
                "rack": None,
                "groups": [],
                "libraries": [],
                "protocols": [],
            },
        )
        one["members"] += row["members"]
        one["static_members"] += row["static_members"]
        if row["partitions"] is not None:
            one["partitions"] = (one["partitions"] or 0) + row["partitions"]
        one["instance"] = one["instance"] or row["instance"]
        one["rack"] = one["rack"] or row["rack"]
        one["groups"].append(row)
        for name, value in (("libraries", row["library"]), ("protocols", protocol_of(row))):
            if value and value not in one[name]:
                one[name].append(value)
    return sorted(found.values(), key=lambda one: (-one["members"], one["client_id"] or "", one["client_host"] or ""))


def protocol_of(row: Row) -> str:
    """How its group is coordinated, and with which strategy."""
    kind = row["group_type"] or UNKNOWN
    other = row["protocol_type"] if row["protocol_type"] not in {None, "consumer"} else None
    return ", ".join(filter(None, (kind, other, row["strategy"])))


def _fill(view: View) -> Mapping[str, Any]:
    address = view.address
    text = address.text("name").strip().lower()
    static = address.one_of("static", ("yes", "no"))
    library, kind = address.text("library"), address.text("type")
    found = view.ask("clients", cluster=view.cluster, text=text, most=_MOST)
    of_all = found[0]["of_all"] if found else 0
    families = Counter(family_of(library_of(row)) for row in found)
    kinds = Counter(row["group_type"] or UNKNOWN for row in found)
    rows = [
        row
        for row in found
        if (not library or family_of(library_of(row)) == library)
        and (not kind or (row["group_type"] or UNKNOWN) == kind)
        and (not static or (row["static_members"] > 0) == (static == "yes"))
    ]
    clients = folded(rows)
    return {
        "clusters": cluster_chips(view),
        "families": chips(view, "library", sorted(families), library, families),
        "kinds": chips(view, "type", sorted(kinds), kind, kinds),
        "statics": chips(view, "static", ("yes", "no"), static),
        "name": address.text("name"),
        "kept": {name: value for name, value in address.given.items() if name != "name"},
        "filtered": bool(text or static or library or kind),
        "everything": address.link("clients"),
        "led": _led(view.ask("libraries", cluster=view.cluster)),
        "number": len(clients),
        "clients": [_client(one, view) for one in clients[:_SHOWN]],
        "left_out": max(0, of_all - _MOST),
        "many_clusters": len(view.ask("rounds")) > 1,
    }


def _client(one: Mapping[str, Any], view: View) -> dict[str, Any]:
    groups = one["groups"]
    return {
        "cluster": one["cluster"],
        "client": one["client_id"] or "",
        "host": one["client_host"] or "",
        "members": one["members"],
        "static": one["static_members"],
        "instance": one["instance"] or "",
        "rack": one["rack"] or "",
        "partitions": one["partitions"],
        "libraries": [words.cut(name, 24) for name in one["libraries"][:_NAMED]],
        "protocols": "; ".join(words.cut(name, 40) for name in one["protocols"][:_NAMED]),
        "groups": [
            {
                "name": row["group_id"],
                "href": view.address.link("groups", row["group_id"], cluster=row["cluster"]),
                "leads": row["leads"],
            }
            for row in groups[:_NAMED]
        ],
        "more": len(groups) - _NAMED,
        "find": view.address.link(q=(one["client_id"] or "")[:200], cluster=one["cluster"]),
    }


def _led(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "library": row["library"] or UNKNOWN,
            "known": row["library"] is not None,
            "type": row["group_type"] or UNKNOWN,
            "protocol": row["protocol_type"] or UNKNOWN,
            "groups": row["groups"],
            "members": row["members"],
        }
        for row in rows
    ]


BOARD = Board(
    path=("clients",),
    template="clients.html.j2",
    fill=_fill,
    title="Clients · Evenkeel",
    word="Clients",
    parameters=frozenset({"name", "library", "type", "static"}),
)
