"""Evenkeel itself: rounds and delays, what was not seen, the alerter, the tables and their maintenance."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import cluster_chips
from dashboards.boards.parts.status import silent
from dashboards.format import Row
from dashboards.page.archive import Signs
from dashboards.page.board import Board, View
from streaming.catalog import Contents
from streaming.tables import WrittenFile
from streaming.terminal import age

__all__ = ["BOARD", "MOST_ROUNDS", "RoundPace", "alerter", "delay", "maintained", "pace", "size"]

_HOUR = timedelta(hours=1)

# An hour of rounds, one a second, of a handful of clusters.
MOST_ROUNDS: Final = 20_000
_SHOWN: Final = 50

# The alerter writes its place every ten minutes where nothing else is decided (_KEEP_PLACE_MS); a few more for a round.
_ALERTER_WITHIN: Final = timedelta(minutes=15)

# An hour is over, and the maintenance has had another one for it.
_MAINTAINED_WITHIN: Final = timedelta(hours=3)

# The shipped rule `unmaintained` fires beyond it.
_MANY_FILES: Final = 6_000


@dataclass(frozen=True, slots=True)
class RoundPace:
    """How the rounds of a time went.

    Attributes:
        rounds: How many there were.
        interval: Median time from one to the next, s; None with fewer than two.
        longest: Longest such time, s; None likewise.
        closing: Median time from a round's opening until all its events were acknowledged, s; None if never known.
        slowest: Longest such time, s.
        events: Median number of events; None if never known.
        log_records: Records of the offsets log in all of them; None if never known.
    """

    rounds: int
    interval: float | None
    longest: float | None
    closing: float | None
    slowest: float | None
    events: float | None
    log_records: int | None


def pace(rows: Sequence[Row]) -> RoundPace:
    """How rounds went.

    Args:
        rows: Rows of rounds_past.sql of one cluster, the newest first.
    """
    times = [row["round_time"] for row in rows]
    steps = [(late - early).total_seconds() for late, early in itertools.pairwise(times)]
    closed = [
        (row["closed_time"] - row["round_time"]).total_seconds() for row in rows if row["closed_time"] is not None
    ]
    events = [row["events"] for row in rows if row["events"] is not None]
    records = [row["log_records"] for row in rows if row["log_records"] is not None]
    return RoundPace(
        rounds=len(rows),
        interval=median(steps) if steps else None,
        longest=max(steps, default=None),
        closing=median(closed) if closed else None,
        slowest=max(closed, default=None),
        events=median(events) if events else None,
        log_records=sum(records) if records else None,
    )


def delay(files: Sequence[WrittenFile]) -> tuple[float, float] | None:
    """Median and longest time from a round's close until its rows were in the tables, s; None where nothing tells.

    The end is by the clock of the job's machine, the beginning by the broker's.
    """
    waits = [(file.at - file.newest).total_seconds() for file in files if file.newest is not None]
    return (median(waits), max(waits)) if waits else None


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
    # (What it has decided since is written at the next transition, or after ten minutes.)
    if behind > _ALERTER_WITHIN:
        return "bad", f"It has recorded no decision for {age(behind)}: it is down or cannot keep up."
    return "", f"It is up: its last recorded decision is {age(behind)} older than the newest round."


def _passed(early: Row, late: Row) -> timedelta:
    """Time from one round to another: elapsed time, in which a broker's clock that is set counts for one step."""
    since, until = early["elapsed_ms"], late["elapsed_ms"]
    # (It starts from 0 again when the job's state was lost.)
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
    if written is None:
        watched = timedelta(0) if newest is None or oldest is None else newest - oldest
        if watched > _MAINTAINED_WITHIN:
            what = f"It has written no history in {age(watched)} of rounds"
            return "bad", f"{what}: see the job's log, or run evenkeel maintain."
        return "unsure", "It has written no history yet: the first comes after the first full hour of rounds."
    since = timedelta(0) if newest is None else max(timedelta(0), newest - written)
    if since > _MAINTAINED_WITHIN:
        return (
            "bad",
            f"It has written no history for {age(since)} of rounds: see the job's log, or run evenkeel maintain.",
        )
    return "", f"It last wrote history {words.mark(written)}."


def size(count: int | None) -> str:
    """Bytes as people read them: "1.3 MB"."""
    if count is None:
        return words.DASH
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def _fill(view: View) -> Mapping[str, Any]:
    newest = {row["cluster"]: row for row in view.ask("rounds")}
    named = [name for name in newest if view.cluster in {None, name}]
    since = (view.now - _HOUR).replace(second=0, microsecond=0)
    past = view.ask("rounds_past", cluster=view.cluster, since=since, most=MOST_ROUNDS)
    tables, signs = view.archive.tables(), view.archive.signs(tuple(newest))
    quiet = set(silent(view.lake))
    undecoded = view.ask("undecoded", cluster=view.cluster, most=_SHOWN)
    gaps = view.ask("gaps", cluster=view.cluster, most=_SHOWN)
    return {
        "clusters": cluster_chips(view),
        "reading": tables is None or signs is None,
        "rounds": [
            _rounds(newest[name], [row for row in past if row["cluster"] == name], view, name in quiet, signs)
            for name in named[:_SHOWN]
        ],
        "delay": _delay(signs),
        "maintenance": _maintenance(tables, list(newest.values())),
        "tables": _tables(tables or (), view),
        "undecoded": [_undecoded(row, view) for row in undecoded],
        "gaps": [_gap(row, view) for row in gaps],
        "shown": _SHOWN,
        "unread": f"{view.lake.unread:.0%}" if view.lake.unread else "",
        "past": age(view.lake.past),
        "alerts": view.address.link("alerts", cluster=view.cluster),
    }


def _rounds(
    newest: Row,
    rows: Sequence[Row],
    view: View,
    is_silent: bool,
    signs: Signs | None,
) -> dict[str, Any]:
    told = pace(rows)
    style, sentence = ("quiet", "The tables' logs are being read.")
    if signs is not None:
        style, sentence = alerter(signs.judged.get(newest["cluster"]), rows)
    return {
        "cluster": newest["cluster"],
        "time": view.clock.time(newest["round_time"]),
        "silent": is_silent,
        "quiet": age(timedelta(seconds=view.lake.quiet_s(newest["cluster"]))),
        "number": told.rounds,
        "wanted": words.DASH if newest["interval_ms"] is None else f"{newest['interval_ms'] / 1000:g} s",
        "interval": _s(told.interval),
        "longest": _s(told.longest),
        "closing": _s(told.closing),
        "slowest": _s(told.slowest),
        "events": told.events,
        "log_records": told.log_records,
        "probe": newest["probe"] or "",
        "alerter": sentence,
        "alerter_style": style,
    }


def _s(value: float | None) -> str:
    if value is None:
        return words.DASH
    return f"{value:.2f} s" if 0 <= value < 10 else age(timedelta(seconds=value)) if value > 0 else f"{value:,.0f} s"


def _delay(signs: Signs | None) -> dict[str, str] | None:
    found = delay(signs.written) if signs is not None else None
    return None if found is None else {"usual": _s(found[0]), "longest": _s(found[1])}


def _maintenance(tables: Sequence[Contents] | None, newest: Sequence[Row]) -> dict[str, str] | None:
    if tables is None:
        return None
    # (Nothing else writes roll-ups, so their newest commit is the maintenance's.)
    written = [one.newest_commit for one in tables if one.table in _ROLLUPS and one.rows and one.newest_commit]
    # (An hour without rounds, or without groups, has nothing to be written.)
    busy = [row["round_time"] for row in newest if row["groups"]]
    oldest = next((one.oldest_round_time for one in tables if one.table == "group_health"), None)
    style, sentence = maintained(max(written, default=None), max(busy, default=None), oldest)
    return {"style": style, "sentence": sentence}


_ROLLUPS: Final = frozenset({"group_hourly", "group_daily", "partition_hourly"})


def _tables(tables: Sequence[Contents], view: View) -> list[dict[str, Any]]:
    return [
        {
            "name": one.table,
            "state": one.state,
            "reason": words.visible(one.reason or ""),
            "rows": one.rows,
            "files": one.files,
            "many": (one.files or 0) > _MANY_FILES,
            "size": size(one.size),
            "from": f"{one.oldest_day:%Y-%m-%d}" if one.oldest_day else words.DASH,
            "to": f"{one.newest_day:%Y-%m-%d}" if one.newest_day else words.DASH,
            "commit": view.clock.time(one.newest_commit.astimezone(UTC)) if one.newest_commit else words.DASH,
            "version": one.version,
        }
        for one in tables
    ]


def _undecoded(row: Row, view: View) -> dict[str, Any]:
    kind = row["kind"] or ""
    version = "" if row["key_type"] is None else f"type {row['key_type']}, version {row['value_version']}"
    return {
        "cluster": row["cluster"],
        "topic": row["topic"] or "",
        "kind": kind,
        "version": version,
        "reason": row["reason"] or "",
        "records": row["records"],
        "place": row["newest_place"] or "",
        "time": view.clock.time(row["newest_time"]),
    }


def _gap(row: Row, view: View) -> dict[str, Any]:
    place = "" if row["topic"] is None else f"{row['topic']} {row['partition']}"
    return {
        "cluster": row["cluster"],
        "kind": row["kind"] or "",
        "place": place,
        "from": view.clock.time(row["from_time"]) if row["from_time"] else words.number(row["from_offset"]),
        "to": view.clock.time(row["to_time"]) if row["to_time"] else words.number(row["to_offset"]),
        "reason": row["reason"] or "",
    }


BOARD = Board(
    path=("evenkeel",), template="evenkeel.html.j2", fill=_fill, title="Evenkeel itself", word="Evenkeel itself"
)
