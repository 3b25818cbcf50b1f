"""One topic: its partitions, what is produced to it, its size, and how far behind each of its readers is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.itself import size
from dashboards.boards.parts.past import ranges, whole_minutes
from dashboards.boards.topics import produced_why, reading_of, unread_why
from dashboards.charts.measures import measure_plot
from dashboards.format import Row
from dashboards.page.board import HEALTH, Board, NotThereError, View
from dashboards.spans import RANGES, Range

__all__ = ["BOARD"]

# Rows of a table; the rest is counted.
_PARTITIONS: Final = 200
_GROUPS: Final = 200

# By the minute a day has 144 looks, one in a heartbeat; by the hour a month has 720.
_STEPS: Final = ((RANGES["24h"], "minute"), (RANGES["30d"], "hour"))

_BYTES: Final[Mapping[str, str]] = {
    "no_right": "the probe lacks Describe on the cluster",
    "unsupported": "brokers before 1.0 do not tell",
    "no_answer": "a broker did not answer",
    "size_unknown": "the size of a partition is not known",
    "first_look": "the rate comes with the second look",
    "recreated": "another topic of this name",
    "missing_rounds": "rounds are missing since the look before",
}


def _fill(view: View) -> Mapping[str, Any]:
    topic = _found(view)
    name = {"cluster": topic["cluster"], "topic": topic["topic"]}
    groups, partitions = view.ask("topic_groups", **name), view.ask("topic_partitions", **name)
    health = {row["group_id"]: row["health"] for row in view.groups(topic["cluster"])}
    # (What is not known any more does not go on waiting: a silent cluster is shown as of its newest round.)
    as_of = next((row["round_time"] for row in view.ask("rounds") if row["cluster"] == topic["cluster"]), view.now)
    span = view.address.range(view.now)
    history = _history(view, topic, span)
    return {
        "name": topic["topic"],
        "cluster": topic["cluster"],
        "topics_href": view.address.link("topics", cluster=view.cluster),
        "read": reading_of(topic),
        "since": view.clock.time(topic["read_by_nobody_since"], exact=False),
        "why": unread_why(topic),
        "offline": topic["offline_partitions"] or 0,
        "facts": _facts(topic, groups, view),
        "ranges": ranges(view, span, RANGES),
        "reading": history is None,
        "plots": history,
        "groups": [_group(row, view, health, as_of) for row in groups[:_GROUPS]],
        "number_of_groups": max(len(groups), topic["groups"]),
        "partitions": [_partition(row, view, topic["cluster"]) for row in partitions[:_PARTITIONS]],
        "number_of_partitions": topic["partitions"] or len(partitions),
    }


def _found(view: View) -> Row:
    """The topic that the address names.

    Raises:
        NotThereError: There is none, or several clusters have one.
    """
    asked = view.address.path[1]
    found: Sequence[Row] = view.ask("topics", cluster=view.cluster, topic=asked)
    if not found:
        everything = view.ask("topics", cluster=view.cluster, topic=None)
        found = [row for row in everything if words.key_of(row["topic"]) == asked]
    if not found:
        where = f" in {words.cut(view.cluster)}" if view.cluster else ""
        message = f"No topic is called {words.cut(asked, 120)}{where}: it was deleted, is not watched, or never was."
        raise NotThereError(message)
    if len(found) > 1:
        clusters = ", ".join(words.cut(row["cluster"]) for row in found)
        message = f"Several clusters have this topic ({clusters}): add ?cluster= and a name to the address."
        raise NotThereError(message)
    return found[0]


def _facts(topic: Row, groups: Sequence[Row], view: View) -> list[dict[str, str]]:
    bytes_why = _BYTES.get(topic["bytes_reason"] or "", topic["bytes_reason"] or "")
    growth = topic["produced_bytes_per_second_min"]
    waiting = [row["lag_total"] for row in groups if row["lag_total"] is not None]
    facts = [
        ("partitions", words.number(topic["partitions"]), ""),
        ("without a leader", words.number(topic["offline_partitions"]), "partitions that nobody can read now"),
        ("produced, /s", words.rate(topic["produced_per_second"]), produced_why(topic) or _over(topic)),
        ("written, at least", words.DASH if growth is None else f"{size(round(growth))}/s", bytes_why or _over(topic)),
        ("records, at most", words.number(topic["records_max"]), "compaction and transactions leave gaps"),
        ("size", size(topic["log_bytes"]), bytes_why if topic["log_bytes"] is None else "one copy, as stored"),
        ("read by", words.counted(topic["groups"], "group"), ""),
        ("lag", words.number(sum(waiting) if waiting else None), "sum over the groups that read it"),
        ("topic id", topic["topic_id"] or words.DASH, "Kafka's own: another one is another topic of this name"),
        ("as of", view.clock.time(topic["round_time"]), "the newest look of the probe, once in a heartbeat"),
    ]
    return [{"word": word, "value": value, "title": title} for word, value, title in facts]


def _over(topic: Row) -> str:
    seconds = topic["rates_over_seconds"]
    return "" if seconds is None else f"over the last {words.seconds(seconds)} s"


def _group(row: Row, view: View, health: Mapping[str, int], as_of: datetime) -> dict[str, Any]:
    group, cluster = row["group_id"], row["cluster"]
    return {
        "name": group,
        "href": view.address.link("groups", group, cluster=cluster),
        "load": view.address.link("groups", group, "load", cluster=cluster),
        "health": health.get(group, 1),
        "word": HEALTH.get(health.get(group, 1), ""),
        "owner": view.owner(group),
        "subscribed": row["subscribed"],
        "members": row["members"],
        "partitions": row["partitions"],
        "lag": row["lag_total"],
        "lag_max": row["lag_max"],
        "lag_unknown": row["lag_unknown"],
        "consumed": row["consumed_per_second"],
        "behind": _behind(row["oldest_unread_time"], as_of),
    }


def _behind(oldest: datetime | None, as_of: datetime) -> str:
    if oldest is None:
        return words.DASH
    waited = max(timedelta(0), as_of - oldest).total_seconds()
    return f"{words.bounds(waited, waited)} or more"


def _partition(row: Row, view: View, cluster: str) -> dict[str, Any]:
    start, end = row["log_start_offset"], row["high_watermark"]
    worst = row["worst_group"]
    return {
        "name": str(row["partition"]) if row["broker"] is None else f"{row['broker']}/{row['partition']}",
        "start": start,
        "end": end,
        "records": None if start is None or end is None else max(0, end - start),
        "produced": row["produced_per_second"],
        "groups": row["groups"],
        "lag": row["lag_max"],
        "lag_unknown": row["lag_unknown"],
        "worst": worst or "",
        "worst_href": view.address.link("groups", worst, "lag", cluster=cluster) if worst else "",
    }


def _history(view: View, topic: Row, span: Range) -> dict[str, Any] | None:
    """The two charts; None while their rows are still being read."""
    asked = whole_minutes(span)
    step = next((step for longest, step in _STEPS if span.length <= longest), "day")
    rows = view.archive.ask(
        "topic_steps", cluster=topic["cluster"], topic=topic["topic"], since=asked.begin, until=asked.end, step=step
    )
    if rows is None:
        return None
    times = [int(row["time"].timestamp()) for row in rows]
    rates = [row["produced_per_second"] for row in rows]
    bytes_, records = [row["log_bytes"] for row in rows], [row["records_max"] for row in rows]
    sized = any(value is not None for value in bytes_)
    return {
        "rates": measure_plot([times, rates], span, ("produced",), unit="/s", points=True),
        "size": measure_plot([times, bytes_], span, ("size",), unit="bytes", lowest_top=1_000, points=True)
        if sized
        else measure_plot([times, records], span, ("records",), unit="records", lowest_top=10, points=True),
        "sized": sized,
        "looks": len(rows),
        "said": f"By the {step}, where there was a look.",
    }


BOARD = Board(
    path=("topics", "{topic}"),
    template="topic.html.j2",
    fill=_fill,
    title="{topic} · Evenkeel",
    parameters=frozenset({"range", "from", "to"}),
    span="24h",
)
