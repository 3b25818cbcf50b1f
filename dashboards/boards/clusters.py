"""The watched clusters: newest round, silence, groups, lag, what blocks the offsets log, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.status import silent
from dashboards.format import Row
from dashboards.page.board import HEALTH, Board, View
from streaming.terminal import age

__all__ = ["BOARD", "missing"]

_SHOWN: Final = 100
_BROKERS: Final = 10


def missing(row: Row) -> list[str]:
    """What the tables lack of a cluster, each with the right that may be behind it.

    Args:
        row: A row of clusters.sql.
    """
    said = []
    if row["not_visible"]:
        said.append(
            f"{words.counted(row['not_visible'], 'group')} with a topic that the probe does not see: it may lack "
            "Describe on it, or the topic does not exist"
        )
    if row["retention_unknown"]:
        said.append(
            f"{words.counted(row['retention_unknown'], 'group')} behind on topics whose retention is not known: the "
            "probe may lack DescribeConfigs on topics, or has not asked yet"
        )
    if row["type_unknown"]:
        said.append(
            f"{words.counted(row['type_unknown'], 'group')} of unknown type: brokers before 3.8 do not report it"
        )
    if row["seen"]:
        said.append(
            f"{words.counted(row['seen'], 'group')} that the probe asks for in rounds, because their log is not read: "
            "generations, commits and the cost of rebalances are not known"
        )
    if row["cluster_id"] is None:
        said.append("the broker gives no cluster id")
    return said


def _fill(view: View) -> Mapping[str, Any]:
    rows = view.ask("clusters")
    quiet = set(silent(view.lake))
    unseen: dict[str, Counter[str]] = {}
    for row in view.ask("unseen"):
        unseen.setdefault(row["cluster"], Counter())[row["kind"]] += row["number"] or 0
    health: dict[str, Counter[int]] = {}
    for group in view.groups():
        health.setdefault(group["cluster"], Counter())[group["health"]] += 1
    firing = Counter(row["cluster"] for row in view.ask("alerts", cluster=None, group_id=None))
    open_ones = view.ask("open_transactions", cluster=view.cluster)
    shown = [row for row in rows if view.cluster in {None, row["cluster"]}]
    return {
        "clusters": [
            _cluster(row, view, row["cluster"] in quiet, unseen, health, firing[row["cluster"]])
            for row in shown[:_SHOWN]
        ],
        "hidden": max(0, len(shown) - _SHOWN),
        "held": [_held(row, view) for row in open_ones[:_SHOWN]],
        "held_number": len(open_ones),
        "held_said": words.counted(len(open_ones), "partition"),
        "everything": view.address.link("clusters") if view.cluster else "",
    }


def _cluster(
    row: Row,
    view: View,
    is_silent: bool,
    unseen: Mapping[str, Mapping[str, int]],
    health: Mapping[str, Mapping[int, int]],
    firing: int,
) -> dict[str, Any]:
    name = row["cluster"]
    lost, groups = unseen.get(name, {}), health.get(name, {})
    return {
        "name": name,
        "id": row["cluster_id"] or "",
        "silent": is_silent,
        "quiet": age(timedelta(seconds=view.lake.quiet_s(name))),
        "round": row["round"],
        "time": view.clock.time(row["round_time"]),
        "interval": words.DASH if row["interval_ms"] is None else f"{row['interval_ms'] / 1000:g} s",
        "probe": row["probe"] or "",
        "groups": row["living_groups"],
        "health": [
            {"health": number, "n": groups[number], "word": word, "href": view.address.link(cluster=name, show=word)}
            for number, word in HEALTH.items()
            if groups.get(number)
        ],
        "members": row["members"],
        "lag": row["lag_total"],
        "lag_unknown": row["lag_unknown"],
        "firing": firing,
        "alerts": view.address.link("alerts", cluster=name),
        "held": row["held_partitions"],
        "log": row["log_partitions"],
        "brokers": row["brokers"],
        "brokers_changed": [
            *_changed(row["brokers_gone"], "gone since", view),
            *_changed(row["brokers_joined"], "joined at", view),
        ],
        "expiry": _expiry(row["offsets_retention_minutes"]),
        "blocked": row["blocked"],
        "quarantine": lost.get("quarantine", 0),
        "gaps": lost.get("gap", 0),
        "itself": view.address.link("evenkeel", cluster=name),
        "missing": missing(row),
        "href": view.address.link(cluster=name),
    }


def _changed(brokers: Sequence[Row] | None, word: str, view: View) -> list[str]:
    """Brokers that went or came: "2 (kafka-2, rack b) gone since 14:03"."""
    return [
        f"{broker['broker']} ({words.cut(', '.join(filter(None, (broker['host'], broker['rack']))), 60)}) {word} "
        f"{view.clock.time(broker['since'])}"
        for broker in (brokers or ())[:_BROKERS]
    ]


def _expiry(minutes: int | None) -> str:
    """For how long the offsets of a group without members are kept."""
    return words.DASH if minutes is None else age(timedelta(minutes=minutes))


def _held(row: Row, view: View) -> dict[str, Any]:
    return {
        "cluster": row["cluster"],
        "partition": row["log_partition"],
        "since": view.clock.time(row["held_since"]),
        "waiting": row["waiting"],
        "groups": row["groups"],
        "producer": "" if row["producer_id"] is None else str(row["producer_id"]),
        "transaction": row["transactional_id"] or "",
    }


BOARD = Board(path=("clusters",), template="clusters.html.j2", fill=_fill, title="Clusters · Evenkeel", word="Clusters")
