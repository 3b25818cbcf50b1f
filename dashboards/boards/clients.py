"""Who runs what: client ids, hosts, libraries as far as they are known, protocols, and the groups of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from dashboards.format import Row
from dashboards.page.board import Board, View, grouped

_UNKNOWN: Final = "unknown"

# Rows of clients.sql that are read; a cluster of ten thousand groups has some ten thousand.
_MOST: Final = 20_000

_SHOWN: Final = 200


# Rows of clients.sql to one for each client id and host, those with most members first: `groups` are its rows,
# `libraries` NULL for none, `protocols` how a row's group is coordinated, and with which strategy.
FOLDED: Final = """
SELECT cluster, client_id, client_host, sum(members)::BIGINT AS members, sum(static_members)::BIGINT AS static_members,
  sum(partitions)::BIGINT AS partitions, min(instance) AS instance, min(rack) AS rack, list(found) AS groups,
  list(DISTINCT library ORDER BY library) FILTER (library IS NOT NULL) AS libraries,
  list(DISTINCT protocol ORDER BY protocol) AS protocols
FROM (
  SELECT *, concat_ws(', ', coalesce(group_type, 'unknown'),
    CASE WHEN protocol_type NOT IN ('consumer', coalesce(group_type, '')) THEN protocol_type END, strategy) AS protocol
  FROM found
) AS found
GROUP BY ALL ORDER BY members DESC, client_id NULLS FIRST, client_host NULLS FIRST
"""


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
    wanted = [
        row
        for row in found
        if (not library or _family(row) == library)
        and (not kind or _kind(row) == kind)
        and (not static or (row["static_members"] > 0) == (static == "yes"))
    ]
    clients = grouped(wanted, FOLDED)
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
