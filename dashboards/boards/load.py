"""Load of all groups: what is produced and consumed, and whether it lies evenly on the members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import chips, cluster_chips, owner_chips
from dashboards.boards.parts.past import ranges
from dashboards.format import Row
from dashboards.page.board import Board, View
from dashboards.spans import LIVE, RANGES, Range

__all__ = ["BOARD", "HOT", "could_be", "headroom", "hot", "judged", "whole_hours"]

_SHOWN: Final = ("100", "1000")

# An imbalance that another assignment would lower by less is not worth a rebalance. A tenth of a member's share is also
# what the table takes for a hot partition.
_WORTH: Final = 0.1

# Partitions that are named in a sentence.
_NAMED: Final = 2

HOT: Final[Mapping[str, str]] = {
    "member": "a member carries more than its share, and another assignment would even it out",
    "partition": "a partition carries more than a member's share by itself: no assignment can even it out",
    "even": "as even as an assignment can make it",
    "unknown": "not known",
}
"""Values of `hot`, each with its meaning."""

_SORTS: Final[Mapping[str, tuple[str, bool]]] = {
    "avoidable": ("avoidable", True),
    "produced": ("produced_per_second", True),
    "consumed": ("consumed_per_second", True),
    "imbalance": ("load_imbalance", True),
    "headroom": ("headroom", False),
    "members": ("members", True),
    "group": ("group_id", False),
}
"""Column of load.sql, and whether the largest comes first, by the value of `sort`."""


def judged(row: Row) -> frozenset[str]:
    """Keys of HOT that hold for a row of load.sql; more than one where a member and a partition are hot."""
    if row["load_imbalance"] is None:
        return frozenset({"unknown"})
    found = set()
    if row["avoidable"] is not None and row["avoidable"] > _WORTH:
        found.add("member")
    if row["hot_partitions"]:
        found.add("partition")
    if not found:
        found.add("unknown" if row["avoidable"] is None else "even")
    return frozenset(found)


def hot(row: Row) -> list[str]:
    """What is to be said about how evenly the load lies, a sentence for each thing; never empty."""
    kinds = judged(row)
    said = []
    if "member" in kinds:
        said.append(
            f"hot member: imbalance {words.ratio(row['load_imbalance'])}, another assignment would reach "
            f"{words.ratio(row['load_imbalance_optimal_max'])}"
        )
    if "partition" in kinds:
        listed = row["hot_partitions"]
        named = ", ".join(
            f"{words.cut(item['topic'] or '', 40)} {item['partition']} ({_part(item['per_second'], row)})"
            for item in listed[:_NAMED]
        )
        more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
        said.append(f"hot partition{'s' if len(listed) > 1 else ''}: {named}{more}; no assignment can even it out")
    if said:
        return said
    if "even" in kinds:
        return ["even" if row["load_imbalance"] <= _WORTH else "as even as an assignment can make it"]
    return [_why_unknown(row)]


def _part(per_second: float | None, row: Row) -> str:
    if per_second is None or not row["produced_per_second"]:
        return f"{words.rate(per_second)}/s"
    return f"{words.percent(per_second / row['produced_per_second'])} of what is produced"


def _why_unknown(row: Row) -> str:
    if row["produced_per_second"] is None:
        return "no rate is known yet: the first window takes a heartbeat"
    if not row["members"]:
        return "no members"
    if not row["produced_per_second"]:
        return "nothing is produced"
    if row["load_imbalance"] is None:
        return "the rate of an assigned partition is not known"
    return "how even it could be is not known: a subscription is not known, or the group is too large"


def could_be(row: Row) -> str:
    """The least load imbalance that an assignment could reach, as bounds."""
    low, high = row["load_imbalance_optimal_min"], row["load_imbalance_optimal_max"]
    if low is None or high is None:
        return words.DASH
    least, most = words.ratio(low), words.ratio(high)
    return most if least == most else f"{least} to {most}"


def headroom(row: Row) -> str:
    """How many times what is produced the group could consume: "1.4" and a sign for times."""
    return words.DASH if row["headroom"] is None else f"{words.rate(row['headroom'])} \N{MULTIPLICATION SIGN}"


def whole_hours(span: Range) -> Range:
    """A span with whole hours at both ends, as the roll-ups have them."""
    begin = span.begin.replace(minute=0, second=0, microsecond=0)
    return Range(span.name, begin, span.end.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1))


def _fill(view: View) -> Mapping[str, Any]:
    address = view.address
    span = address.range(view.now)
    kind = address.one_of("hot", HOT)
    sort = address.one_of("sort", _SORTS) or "avoidable"
    most = int(address.one_of("most", _SHOWN) or _SHOWN[0])
    compared = address.one_of("compare", ("before",)) == "before"
    owner, text = address.text("owner"), address.text("name").strip().lower()
    everyone = view.ask("load", cluster=view.cluster)
    named = [row for row in everyone if not text or text in row["group_id"].lower()]
    owned = [row for row in named if not owner or view.owner(row["group_id"]) == owner]
    counts = Counter(word for row in owned for word in judged(row))
    shown = [row for row in owned if not kind or kind in judged(row)]
    if sort != "avoidable":
        column, largest = _SORTS[sort]
        known = [row for row in shown if row[column] is not None]
        shown = [*sorted(known, key=lambda row: row[column], reverse=largest), *(r for r in shown if r[column] is None)]
    of_time = span.name != LIVE
    told = _told(view, whole_hours(span)) if of_time else {}
    before = _told(view, whole_hours(span).before) if of_time and compared else {}
    rates = [row for row in shown if row["produced_per_second"] is not None]
    return {
        "ranges": ranges(view, span, RANGES),
        "clusters": cluster_chips(view),
        "owners": owner_chips(view, (row["group_id"] for row in named)),
        "kinds": chips(view, "hot", HOT, kind, counts),
        "name": address.text("name"),
        "kept": {name: value for name, value in address.given.items() if name != "name"},
        "filtered": bool(kind or owner or text or view.cluster),
        "everything": address.link("load"),
        "reading": told is None or before is None,
        "of_time": of_time,
        "compared": compared and of_time,
        "compare": address.here(compare=None if compared else "before"),
        "sums": _sums(shown, rates),
        "sorts": {word: address.here(sort=word) for word in _SORTS},
        "sort": sort,
        "rows": [_row(row, view, told or {}, before or {}) for row in shown[:most]],
        "number": len(shown),
        "of": len(everyone),
        "more_href": address.here(most=_SHOWN[1]) if most < int(_SHOWN[1]) else "",
        "many_clusters": len(view.ask("rounds")) > 1,
    }


def _told(view: View, span: Range) -> dict[tuple[str, str], Row] | None:
    """Rows of load_groups.sql by group; None while they are still being read."""
    rows = view.archive.ask("load_groups", cluster=view.cluster, since=span.begin, until=span.end)
    return None if rows is None else {(row["cluster"], row["group_id"]): row for row in rows}


def _sums(rows: Sequence[Row], known: Sequence[Row]) -> list[dict[str, str]]:
    consumed = [row["consumed_per_second"] for row in rows if row["consumed_per_second"] is not None]
    figures = (
        ("produced for them, /s", words.rate(sum(row["produced_per_second"] for row in known) if known else None),
         "a topic that several groups read counts for each of them"),
        ("consumed, /s", words.rate(sum(consumed) if consumed else None), ""),
        ("groups with rates", f"{words.number(len(known))} of {words.number(len(rows))}", ""),
    )  # fmt: skip
    return [{"word": word, "value": value, "title": title, "before": ""} for word, value, title in figures]


def _row(
    row: Row, view: View, told: Mapping[tuple[str, str], Row], before: Mapping[tuple[str, str], Row]
) -> dict[str, Any]:
    key = row["cluster"], row["group_id"]
    said = hot(row)
    kinds = judged(row)
    return {
        "key": f"{row['cluster']}/{words.key_of(row['group_id'])}",
        "group": row["group_id"],
        "cluster": row["cluster"],
        "owner": view.owner(row["group_id"]),
        "href": view.address.link("groups", row["group_id"], "load", cluster=row["cluster"]),
        "style": "warn" if "member" in kinds else "unsure" if "partition" in kinds else "quiet",
        "says": said[0],
        "all": "\n".join(said),
        "more": len(said) - 1,
        "produced": row["produced_per_second"],
        "consumed": row["consumed_per_second"],
        "imbalance": row["load_imbalance"],
        "could_be": could_be(row),
        "by_number": row["imbalance"],
        "headroom": headroom(row),
        "tight": bool(row["members"]) and row["headroom"] is not None and row["headroom"] < 1,
        "members": row["members"],
        "records": told.get(key, {}).get("high_watermark_growth"),
        "records_before": before.get(key, {}).get("high_watermark_growth"),
    }


BOARD = Board(
    path=("load",),
    template="load.html.j2",
    fill=_fill,
    title="Load · Evenkeel",
    word="Load",
    parameters=frozenset({"range", "from", "to", "compare", "hot", "owner", "name", "sort", "most"}),
)
