"""Advice that holds: what could be changed in which group, why, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import chips, cluster_chips
from dashboards.format import Row
from dashboards.page.board import Board, View

__all__ = ["BOARD", "saving"]

_SHOWN: Final = 100

_KINDS: Final = (
    "static_membership",
    "session_timeout",
    "cooperative",
    "strategy",
    "too_many_members",
    "hot_partition",
    "kip848",
    "declare_clients",
    "abandoned",
)


def saving(row: Row) -> str:
    """What following an advice would have saved, in a sentence."""
    days = words.counted(row["period_days"], "day")
    if row["saved"] is None:
        return f"How much it would have saved in {days} is unknown."
    amount = f"{row['saved']:,.0f}" if row["saved"] >= 100 else f"{row['saved']:,g}"
    return f"It would have saved {amount} {row['unit'] or ''}".rstrip() + f" in {days}."


def _fill(view: View) -> Mapping[str, Any]:
    found = view.archive.ask("advice", cluster=view.cluster, group_id=None)
    looked = view.archive.ask("advice_days", cluster=view.cluster)
    kind, owner, text = view.address.text("kind"), view.address.text("owner"), view.address.text("group").strip()
    if kind not in {row["kind"] for row in found or ()}:
        kind = view.address.one_of("kind", _KINDS)
    named = [row for row in found or () if text.lower() in row["group_id"].lower()]
    owned = [row for row in named if not owner or view.owner(row["group_id"]) == owner]
    shown = [row for row in owned if not kind or row["kind"] == kind]
    owners = Counter(view.owner(row["group_id"]) for row in named)
    kinds = Counter(row["kind"] for row in owned)
    return {
        "reading": found is None or looked is None,
        "clusters": cluster_chips(view),
        "kinds": [
            {**chip, "word": chip["word"].replace("_", " ")} for chip in chips(view, "kind", sorted(kinds), kind, kinds)
        ],
        "owners": chips(view, "owner", sorted(name for name in owners if name), owner, owners) if view.owners else [],
        "group": text,
        "kept": {name: value for name, value in view.address.given.items() if name != "group"},
        "filtered": bool(kind or owner or text),
        "everything": view.address.link("advice"),
        "number": len(shown),
        "of": len(found or ()),
        "rows": [_row(row, view) for row in shown[:_SHOWN]],
        "looked": _looked(looked or ()),
        "many_clusters": len(view.ask("rounds")) > 1,
        "cost": view.address.link("cost", cluster=view.cluster),
    }


def _row(row: Row, view: View) -> dict[str, Any]:
    return {
        "key": f"{row['cluster']}/{words.key_of(row['group_id'])}/{row['kind']}",
        "group": row["group_id"],
        "cluster": row["cluster"],
        "owner": view.owner(row["group_id"]),
        "href": view.address.link("groups", row["group_id"], cluster=row["cluster"]),
        "kind": row["kind"].replace("_", " "),
        "advice": row["advice"] or "",
        "evidence": row["evidence"] or "",
        "cost": row["cost"] or "",
        "saving": saving(row),
        "since": f"{row['since']:%Y-%m-%d}" if row["since"] else words.DASH,
        "day": f"{row['event_date']:%Y-%m-%d}",
        "events": row["events"],
        "details": [
            (words.cut(item["name"].replace("_", " "), 80), words.cut(item["value"] or words.DASH, 200))
            for item in row["details"] or ()
        ],
    }


def _looked(rows: Sequence[Row]) -> list[str]:
    """What the advice rests on, a sentence for each cluster."""
    return [
        f"{words.cut(row['cluster'])}: {words.counted(row['groups'] or 0, 'group')} looked at for "
        f"{row['event_date']:%Y-%m-%d}, over {words.counted(row['period_days'] or 0, 'day')} with figures."
        for row in rows
    ]


BOARD = Board(
    path=("advice",),
    template="advice.html.j2",
    fill=_fill,
    title="Advice · Evenkeel",
    word="Advice",
    parameters=frozenset({"kind", "owner", "group"}),
)
