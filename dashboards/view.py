"""One refresh of the page: the chosen cluster and group, and the head with freshness and problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from dashboards.format import Clock, visible
from dashboards.html import board, render
from dashboards.lake import PageLake, since
from streaming.terminal import age

__all__ = ["HEALTH", "View", "head"]

HEALTH = {3: "critical", 2: "warning", 1: "unknown", 0: "ok", -1: "no members"}
"""Words for the column `health` of groups.sql."""


@dataclass(frozen=True, slots=True)
class View:
    """One refresh for one viewer.

    Attributes:
        lake: The page's data.
        now: Time of the refresh.
        zone: The viewer's time zone.
        cluster: The cluster in the address; None for all.
        group: The group in the address; None for the overview.
        show: The only health that the overview shows, as a word; None for all.
        span: How far back the charts of a group go, as a word; None for the default.
    """

    lake: PageLake
    now: datetime
    zone: tzinfo
    cluster: str | None
    group: str | None
    show: str | None
    span: str | None

    @property
    def clock(self) -> Clock:
        """The viewer's clock."""
        return Clock(self.now, self.zone, self.lake.past)

    @property
    def since(self) -> datetime:
        """Beginning of the past that the queries cover."""
        return since(self.lake.past, self.now)

    def ask(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query."""
        return self.lake.ask(query, parameters)

    def groups(self, cluster: str | None) -> list[dict[str, Any]]:
        """The living groups of a cluster, or of all."""
        return self.ask("groups", cluster=cluster, group_id=None, imbalance=self.lake.thresholds.imbalance)


def head(view: View) -> bool:
    """Draw the head; False when there is nothing to draw below it."""
    rounds = view.ask("rounds")
    groups_seen = bool(rounds) or bool(view.groups(cluster=None))
    newest = max((row["round_time"] for row in rounds), default=None)
    notes, empty = [], None
    if view.lake.problem is not None:
        notes.append({"head": "The lake cannot be read.", "text": visible(view.lake.problem), "mild": False})
    silent = [row for row in rounds if _is_silent(row, view)]
    notes += [_silence(row, view) for row in silent]
    notes += [_held(row) for row in rounds if row["held_partitions"]]
    if view.lake.unread:
        text = f"Older rows are still being read: {view.lake.unread:.0%} of the files to go."
        notes.append({"head": "The page has just started.", "text": text, "mild": True})
    if not groups_seen and view.lake.problem is None:
        empty = {
            "head": "No round yet.",
            "text": (
                "The tables are empty or missing. The first round appears here by itself about half a minute "
                "after the probe and the job have started (`evenkeel up` starts both). If nothing appears, check their "
                "logs and that this page and the job use the same lake."
            ),
        }
    shown = None
    if newest is not None:
        shown = {
            "age": age(view.now - newest),
            "time": view.clock.time(newest),
            "whole": view.clock.whole(newest),
        }
    html = render(
        "head.html.j2",
        clusters=[row["cluster"] for row in rounds],
        newest=shown,
        silent=bool(silent) and len(silent) == len(rounds),
        notes=notes,
        empty=empty,
        health_words=HEALTH,
    )
    board(html, key="head", place=f"{view.cluster or ''}/{view.group or ''}")
    return groups_seen


def _is_silent(row: Mapping[str, Any], view: View) -> bool:
    return view.lake.quiet_s(row["cluster"]) > view.lake.thresholds.silent_after_s(row["interval_ms"])


def _silence(row: Mapping[str, Any], view: View) -> dict[str, Any]:
    quiet = age(timedelta(seconds=view.lake.quiet_s(row["cluster"])))
    return {
        "head": f"No update from {visible(row['cluster'])} for {quiet}.",
        "text": (
            f"Rounds come every {(row['interval_ms'] or 0) / 1000:g} s. Everything below is as of "
            f"{view.clock.time(row['round_time'])}: check that the probe and the job are running."
        ),
        "mild": False,
    }


def _held(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "head": "Part of the offsets log is blocked.",
        "text": (
            f"Open transactions block {row['held_partitions']} of {row['log_partitions']} partitions of "
            f"__consumer_offsets in {visible(row['cluster'])}: newer records there cannot be read yet."
        ),
        "mild": True,
    }
