"""The watched clusters and Evenkeel itself: rounds, silence, what was not seen, the alerter, tables, maintenance.

The line above every board is made here, too: how old the board is, and what is wrong with the lake as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row
from dashboards.lake import PageLake
from dashboards.page.board import Board, View
from dashboards.spans import HOUR
from streaming.catalog import Contents
from streaming.tables import DataFile
from streaming.terminal import age

# An hour of rounds, one a second, of a handful of clusters.
MOST_ROUNDS: Final = 20_000

_SHOWN: Final = 50
_MOST_CLUSTERS: Final = 100

# The alerter writes its place every ten minutes where nothing else is decided (_KEEP_PLACE_MS); a few more for a round.
_ALERTER_WITHIN: Final = timedelta(minutes=15)

# An hour is over, and the maintenance has had another one for it.
_MAINTAINED_WITHIN: Final = timedelta(hours=3)

# Probe and job of a cluster have its first round in the tables within a minute.
_STARTS_WITHIN: Final = timedelta(minutes=3)

_ROLLUPS: Final = frozenset({"group_hourly", "group_daily", "partition_hourly"})

_READING: Final = ("quiet", "The tables' logs are being read.")

_MISSING: Final[Mapping[str, str]] = {
    "not_visible": "with a topic that the probe does not see: it may lack Describe on it, or the topic does not exist",
    "retention_unknown": "behind on topics whose retention is not known: the probe may lack DescribeConfigs on topics, "
    "or has not asked yet",
    "type_unknown": "of unknown type: brokers before 3.8 do not report it",
    "seen": "that the probe asks for in rounds, because their log is not read: generations, commits and the cost of "
    "rebalances are not known",
}
"""Columns of clusters.sql that count groups of which something is missing, and what that is."""


def silent(lake: PageLake) -> tuple[str, ...]:
    """Clusters without a new round for longer than the alert rules allow."""
    return tuple(
        row["cluster"]
        for row in lake.ask("rounds")
        if lake.quiet_s(row["cluster"]) > lake.thresholds.silent_after_s(row["interval_ms"])
    )


def status(view: View) -> dict[str, Any]:
    """Values of the macro `status`; `there` says whether there is anything to draw below it."""
    rounds, unstarted = view.rows("rounds"), view.rows("unstarted")
    quiet = silent(view.lake)
    shown = [row for row in rounds if view.cluster in {None, row["cluster"]}]
    late = [row for row in shown if row["cluster"] in quiet]
    newest = max((row["round_time"] for row in shown), default=None)
    if newest is not None and view.cluster is None:
        # Otherwise a cluster whose clock is ahead would set the time for all.
        newest = min(newest, view.now)
    return {
        "there": bool(rounds) or bool(view.rows("groups")),
        "reading": not view.lake.present and view.lake.problem is None,
        "clusters": view.clusters,
        "newest": newest,
        "silent": bool(late) and len(late) == len(shown),
        "quiet": _quiet(view, *(row["cluster"] for row in late)),
        "notes": [*_notes(view, rounds, quiet), *_unstarted(view, unstarted)],
    }


def _notes(view: View, rounds: Sequence[Row], quiet: Sequence[str]) -> list[tuple[str, str, bool]]:
    """What is wrong with the lake as a whole: head, sentence, and whether it is mild."""
    notes = []
    if view.lake.problem is not None:
        notes.append(("The lake cannot be read.", words.visible(view.lake.problem), False))
    for row in rounds:
        name = words.visible(row["cluster"])
        if row["cluster"] in quiet:
            every, at = f"{(row['interval_ms'] or 0) / 1000:g} s", words.time(row["round_time"])
            text = f"Rounds come every {every}. Everything below is as of {at}: check that the probe and the job run."
            notes.append((f"No update from {name} for {_quiet(view, row['cluster'])}.", text, False))
        if row["held_partitions"]:
            held = f"{row['held_partitions']} of {row['log_partitions']} partitions of __consumer_offsets in {name}"
            text = f"Open transactions block {held}: newer records there cannot be read yet."
            notes.append(("Part of the offsets log is blocked.", text, True))
    if view.lake.unread:
        text = f"Older rows are still being read: {view.lake.unread:.0%} of the files to go."
        notes.append(("The server has just started.", text, True))
    return notes


def _unstarted(view: View, rows: Sequence[Row]) -> list[tuple[str, str, bool]]:
    """A note on each watched cluster without a round."""
    text = "Nothing is known of it: check that its probe reaches it, and the job's log."
    return [
        (
            f"No round from {words.visible(row['cluster'])} yet.",
            f"{text} It is watched since {words.time(row['written_time'])}.",
            view.now - row["written_time"] < _STARTS_WITHIN,
        )
        for row in rows
    ]


def _quiet(view: View, *clusters: str) -> str:
    """Since when at least one of some clusters has been quiet."""
    return age(timedelta(seconds=min(map(view.lake.quiet_s, clusters), default=0.0)))


def missing(row: Row) -> list[str]:
    """What the tables lack of a cluster, each with the right that may be behind it.

    Args:
        row: A row of clusters.sql.
    """
    if row["round"] is None:
        return ["everything: there is no round of it yet"]
    said = [f"{words.counted(row[column], 'group')} {text}" for column, text in _MISSING.items() if row[column]]
    if row["cluster_id"] is None:
        return [*said, "the broker gives no cluster id"]
    return said


def overview(view: View) -> dict[str, Any]:
    """The chosen clusters, or all, at one glance: rows of clusters.sql, the sickest first, and what is beside them.

    Values of `quiet` say for how long there has been no round, for clusters of which the present is not known.
    """
    groups = view.columns("groups", cluster=None)
    health = Counter(zip(groups["cluster"].to_pylist(), groups["health"].to_pylist(), strict=True))
    firing = Counter(row["cluster"] for row in view.rows("alerts", cluster=None))
    quiet = {name: f"silent for {_quiet(view, name)}" for name in silent(view.lake)}
    quiet |= {row["cluster"]: "no round yet" for row in view.rows("unstarted")}

    def sickness(row: Row) -> int:
        """The worst health of its groups; nothing is worse than not to know."""
        of_groups: list[int] = [number for name, number in health if name == row["cluster"]]
        return max([3 if row["cluster"] in quiet else -1, *of_groups])

    shown = [
        {**row, "health": sickness(row)} for row in view.rows("clusters") if view.cluster in {None, row["cluster"]}
    ]
    shown.sort(key=lambda row: (row["cluster"] not in quiet, -row["health"], -firing[row["cluster"]], row["cluster"]))
    return {
        "clusters": shown[:_MOST_CLUSTERS],
        "hidden": len(shown) - _MOST_CLUSTERS,
        "quiet": quiet,
        "health": health,
        "firing": firing,
    }


def _clusters(view: View) -> Mapping[str, Any]:
    return {
        **overview(view),
        "unseen": {(row["cluster"], row["kind"]): row["number"] for row in view.rows("unseen")},
        "missing": missing,
        "held": view.rows("open_transactions"),
        "shown": _MOST_CLUSTERS,
    }


def delay(files: Sequence[DataFile]) -> tuple[timedelta, timedelta] | None:
    """Median and longest time from a round's close until its rows were in the tables; None where it is not known.

    The end is by the clock of the job's machine, the beginning by the broker's.
    """
    waits = [file.written / 1000 - file.newest.timestamp() for file in files if file.newest is not None]
    if waits:
        return (timedelta(seconds=median(waits)), timedelta(seconds=max(waits)))
    return None


def alerter(judged: int | None, rounds: Sequence[Row]) -> tuple[str, str]:
    """Whether the alerter lives, as a style and a sentence.

    Args:
        judged: The round up to which it has decided everything.
        rounds: Rows of rounds_past.sql of its cluster, the newest first.
    """
    if judged is None:
        return "quiet", "No alerter has decided anything about this cluster yet."
    if not rounds:
        return "unsure", f"It has decided up to round {judged}; there were no newer rounds in the last hour."
    reached = next((row for row in rounds if row["round"] <= judged), None)
    if reached is None:
        return "bad", "It has decided nothing in the last hour: it is down or cannot keep up."
    behind = _passed(reached, rounds[0])
    # What it has decided since is written at the next transition, or after ten minutes.
    if behind > _ALERTER_WITHIN:
        return "bad", f"It has recorded no decision for {age(behind)}: it is down or cannot keep up."
    return "", f"It is up: its last recorded decision is {age(behind)} older than the newest round."


def _passed(early: Row, late: Row) -> timedelta:
    """Time from one round to another: elapsed time, in which a broker's clock that is set counts for one step."""
    since, until = early["elapsed_ms"], late["elapsed_ms"]
    # It starts from 0 again when the job's state was lost.
    if since is not None and until is not None and until >= since:
        return timedelta(milliseconds=until - since)
    passed: timedelta = late["round_time"] - early["round_time"]
    return max(timedelta(0), passed)


def maintained(written: datetime | None, newest: datetime | None, oldest: datetime | None = None) -> tuple[str, str]:
    """Whether the maintenance works, as a style and a sentence.

    Args:
        written: When roll-ups were last written; None for never.
        newest: The newest round with a group; None without one.
        oldest: The oldest round with a group that the lake keeps; None without one.
    """
    known = oldest if written is None else written
    waited = timedelta(0) if newest is None or known is None else max(timedelta(0), newest - known)
    if waited > _MAINTAINED_WITHIN:
        since = "in" if written is None else "for"
        what = f"It has written no history {since} {age(waited)} of rounds"
        return "bad", f"{what}: see the job's log, or run evenkeel maintain."
    if written is None:
        return "unsure", "It has written no history yet: the first comes after the first full hour of rounds."
    return "", f"It last wrote history {words.time(written)}."


def _itself(view: View) -> Mapping[str, Any]:
    newest = view.rows("rounds")
    since = (view.now - HOUR).replace(second=0, microsecond=0)
    past = view.rows("rounds_past", since=since, most=MOST_ROUNDS)
    tables, signs = view.archive.tables(), view.archive.signs([row["cluster"] for row in newest])
    if tables is None or signs is None:
        view.unread.add("logs")
    shown = [row for row in newest if view.cluster in {None, row["cluster"]}][:_SHOWN]
    alerters = {}
    for name in (row["cluster"] for row in shown):
        of_cluster = [row for row in past if row["cluster"] == name]
        alerters[name] = _READING if signs is None else alerter(signs.judged.get(name), of_cluster)
    return {
        "rounds": shown,
        "pace": {row["cluster"]: row for row in view.rows("rounds_pace", since=since)},
        "batches": {row["cluster"]: row for row in view.rows("batches", since=since)},
        "quiet": {name: _quiet(view, name) for name in silent(view.lake)},
        "alerters": alerters,
        "delay": None if signs is None else delay(signs.written),
        "maintenance": _READING if tables is None else _maintenance(tables, newest),
        "tables": tables or (),
        "undecoded": view.rows("undecoded", most=_SHOWN),
        "gaps": view.rows("gaps", most=_SHOWN),
        "shown": _SHOWN,
    }


def _maintenance(tables: Sequence[Contents], newest: Sequence[Row]) -> tuple[str, str]:
    # Nothing else writes roll-ups, so their newest commit is the maintenance's.
    written = [one.newest_commit for one in tables if one.table in _ROLLUPS and one.rows and one.newest_commit]
    # An hour without rounds, or without groups, has nothing to be written.
    busy = [row["round_time"] for row in newest if row["groups"]]
    oldest = next((one.oldest_round_time for one in tables if one.table == "group_health"), None)
    return maintained(max(written, default=None), max(busy, default=None), oldest)


CLUSTERS = Board(
    path=("clusters",), template="clusters.html.j2", fill=_clusters, title="Clusters · Evenkeel", word="Clusters"
)

ITSELF = Board(
    path=("evenkeel",), template="evenkeel.html.j2", fill=_itself, title="Evenkeel itself", word="Evenkeel itself"
)
