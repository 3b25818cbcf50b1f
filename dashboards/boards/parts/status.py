"""The line above every board: how old it is, and what is wrong with the lake as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dashboards.format import visible
from dashboards.lake import PageLake
from dashboards.page.board import View
from streaming.terminal import age

__all__ = ["silent", "status"]


def silent(lake: PageLake) -> tuple[str, ...]:
    """Clusters without a new round for longer than the alert rules allow."""
    return tuple(
        row["cluster"]
        for row in lake.ask("rounds")
        if lake.quiet_s(row["cluster"]) > lake.thresholds.silent_after_s(row["interval_ms"])
    )


def status(view: View) -> dict[str, Any]:
    """Values of `status.html.j2`; `there` says whether there is anything to draw below it."""
    rounds = view.ask("rounds")
    there = bool(rounds) or bool(view.groups())
    notes = []
    if view.lake.problem is not None:
        notes.append(_note("The lake cannot be read.", visible(view.lake.problem), mild=False))
    quiet = [row for row in rounds if row["cluster"] in silent(view.lake)]
    notes += [_silence(row, view) for row in quiet]
    notes += [_held(row) for row in rounds if row["held_partitions"]]
    if view.lake.unread:
        text = f"Older rows are still being read: {view.lake.unread:.0%} of the files to go."
        notes.append(_note("The server has just started.", text, mild=True))
    shown = [row for row in rounds if view.cluster in {None, row["cluster"]}]
    newest = _newest(shown, view)
    late = [row for row in shown if row in quiet]
    return {
        "there": there,
        "reading": not view.lake.present and view.lake.problem is None,
        "clusters": [row["cluster"] for row in rounds],
        "newest": newest,
        "time": view.clock.time(newest),
        "whole": view.clock.whole(newest),
        "silent": bool(late) and len(late) == len(shown),
        "quiet": age(timedelta(seconds=min((view.lake.quiet_s(row["cluster"]) for row in late), default=0.0))),
        "notes": notes,
    }


def _newest(rows: Sequence[Mapping[str, Any]], view: View) -> datetime | None:
    """Time of the newest of these rounds; None without any."""
    newest: datetime | None = max((row["round_time"] for row in rows), default=None)
    if newest is None or view.cluster is not None:
        return newest
    # (Otherwise a cluster whose clock is ahead would set the time for all.)
    return min(newest, view.now)


def _note(head: str, text: str, *, mild: bool) -> dict[str, Any]:
    return {"head": head, "text": text, "mild": mild}


def _silence(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    quiet = age(timedelta(seconds=view.lake.quiet_s(row["cluster"])))
    text = (
        f"Rounds come every {(row['interval_ms'] or 0) / 1000:g} s. Everything below is as of "
        f"{view.clock.time(row['round_time'])}: check that the probe and the job are running."
    )
    return _note(f"No update from {visible(row['cluster'])} for {quiet}.", text, mild=False)


def _held(row: Mapping[str, Any]) -> dict[str, Any]:
    text = (
        f"Open transactions block {row['held_partitions']} of {row['log_partitions']} partitions of "
        f"__consumer_offsets in {visible(row['cluster'])}: newer records there cannot be read yet."
    )
    return _note("Part of the offsets log is blocked.", text, mild=True)
