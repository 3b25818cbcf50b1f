"""Topics: partitions, rates, sizes, who reads them, or that nobody does; of all, and of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from dashboards import format as words
from dashboards.charts import measure_plot
from dashboards.format import Row
from dashboards.page.board import TIMES, Board, View, total
from dashboards.spans import Range, step_of

# Longer names are cut in the column `readers`, so that they name no group.
_LONGEST_READER: Final = 999

# Rows of the tables of one topic; the rest is counted.
_SHOWN: Final = 200

# By the minute a day has 144 looks, one in a heartbeat; by the hour a month has 720.
_MOST_STEPS: Final = 1_440

_READS: Final = ("read", "nobody", "unknown")
"""Values of `read`: a group reads it, nobody does, it is not known."""

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

_SUMMED: Final = ("partitions", "offline_partitions", "produced_per_second", "log_bytes")
"""Columns of topics.sql that the board sums up over the topics that it lists."""

_WHY: Final[Mapping[str, str]] = {
    "filtered": "the configuration leaves out groups, which may read it",
    "share_groups": "there are share groups whose topics could not be asked",
    "undescribed": "the topics of a group were not known at this look",
    "first_look": "the rate comes with the second look, a heartbeat after the first",
    "recreated": "another topic of this name",
    "missing_rounds": "rounds are missing since the look before",
    "offset_unknown": "the end of a partition is not known, or went back",
    "unsupported": "brokers before 1.0 do not report it",
    "no_answer": "a broker did not answer",
    "size_unknown": "the size of a partition is not known",
}
"""The reasons in the table `topics`, in words; those for `no_right` depend on the column (`_why`)."""


def _why(reason: str | None, right: str, otherwise: str = "") -> str:
    """Why something is not known: by the reason in the table, or the right that is missing."""
    known = {**_WHY, "no_right": right}
    return known.get(reason or "", (reason or otherwise).replace("_", " "))


def reading_of(row: Row) -> str:
    """read, nobody or unknown, for a row of topics.sql."""
    if row["groups"]:
        return "read"
    return "nobody" if row["read_by_nobody"] else "unknown"


def unread_why(row: Row) -> str:
    """Why it is not known whether somebody reads a topic; "" where it is."""
    if reading_of(row) != "unknown":
        return ""
    right = "the probe may not describe all groups, so some may be hidden"
    return _why(row["read_by_nobody_reason"], right, "not looked at yet")


def produced_why(row: Row) -> str:
    """Why the rate of a topic is not known; "" where it is."""
    if row["produced_per_second"] is not None:
        return ""
    if row["round_time"] is None:
        return "the probe does not look at this topic (probe.cluster_topics, filters, or a missing right)"
    return _why(row["produced_reason"], "no right")


def _bytes_why(row: Row) -> str:
    return _why(row["bytes_reason"], "the probe lacks Describe on the cluster")


def _topics(view: View) -> Mapping[str, Any]:
    read, text = view.address.one_of("read", _READS), view.address.text("name").strip().lower()
    everything = view.rows("topics", topic=None)
    named = [row for row in everything if text in row["topic"].lower()]
    counts = Counter(map(reading_of, named))
    found = view.ordered([row for row in named if not read or reading_of(row) == read], _SORTS)
    return {
        "reads": view.chips("read", _READS, counts),
        "sums": {column: total(found, column) for column in _SUMMED},
        "sized": sum(row["log_bytes"] is not None for row in found),
        "rated": sum(row["produced_per_second"] is not None for row in found),
        "rows": found[: view.most],
        "reading_of": reading_of,
        "unread_why": unread_why,
        "produced_why": produced_why,
        "longest_reader": _LONGEST_READER,
        "number": len(found),
        "of": len(everything),
    }


def _topic(view: View) -> Mapping[str, Any]:
    topic = view.named(lambda name: view.rows("topics", topic=name), "topic")
    name = {"cluster": topic["cluster"], "topic": topic["topic"]}
    groups, partitions = view.rows("topic_groups", **name), view.rows("topic_partitions", **name)
    everyone = view.columns("groups", cluster=topic["cluster"])
    # What is not known any more does not go on waiting: a silent cluster is shown as of its newest round.
    as_of = next((row["round_time"] for row in view.rows("rounds") if row["cluster"] == topic["cluster"]), view.now)
    return {
        "topic": topic,
        "read": reading_of(topic),
        "why": unread_why(topic),
        "lag_total": total(groups, "lag_total"),
        "produced_why": produced_why,
        "bytes_why": _bytes_why,
        "plots": _history(view, name),
        "groups": groups[:_SHOWN],
        "health": dict(zip(everyone["group_id"].to_pylist(), everyone["health"].to_pylist(), strict=True)),
        "behind": lambda row: _behind(row["oldest_unread_time"], as_of),
        "number_of_groups": max(len(groups), topic["groups"]),
        "partitions": partitions[:_SHOWN],
        "number_of_partitions": topic["partitions"] or len(partitions),
    }


@words.known
def _behind(oldest: datetime, as_of: datetime) -> str:
    waited = max(timedelta(0), as_of - oldest).total_seconds()
    return f"{words.bounds(waited, waited)} or more"


def _history(view: View, name: Mapping[str, str]) -> dict[str, Any]:
    """The two charts: what is produced, and the size, or the records where that is not known."""
    span: Range = view.span
    step = step_of(span, _MOST_STEPS)
    rows = view.rows("topic_steps", span, **name, step=step)
    times = [int(row["time"].timestamp()) for row in rows]
    sized = any(row["log_bytes"] is not None for row in rows)
    column, unit, least = ("log_bytes", "bytes", 1_000.0) if sized else ("records_max", "records", 10.0)
    line = "size on disk, one copy" if sized else "records, at most"
    rates, sizes = ([times, [row[of] for row in rows]] for of in ("produced_per_second", column))
    return {
        "rates": measure_plot(rates, span, ("produced",), unit="/s", points=True),
        "size": measure_plot(sizes, span, (line,), unit=unit, lowest_top=least, points=True),
        "looks": len(rows),
        "step": step,
    }


TOPICS = Board(
    path=("topics",),
    template="topics.html.j2",
    fill=_topics,
    title="Topics · Evenkeel",
    word="Topics",
    parameters=frozenset({"name", "read", "sort", "most"}),
)

TOPIC = Board(
    path=("topics", "{topic}"),
    template="topic.html.j2",
    fill=_topic,
    title="{topic} · Evenkeel",
    parameters=TIMES,
    span="24h",
)
