"""The overview: groups that need attention and why, firing alerts, the newest decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboards import format as words
from dashboards.alerts import alerts_html
from dashboards.html import board, render
from dashboards.rebalances import rebalance_rows
from dashboards.view import HEALTH, View

__all__ = ["overview"]

Row = Mapping[str, Any]

# Limits of drawn rows: redrawing a thousand rows every few seconds would make the page restless.
_MOST_GROUPS = 100
_MOST_DECISIONS = 12


def overview(view: View) -> None:
    """Draw the overview."""
    groups = view.groups(view.cluster)
    counted = Counter(group["health"] for group in groups)
    counts = [
        {"health": health, "n": counted[health], "word": word, "chosen": word == view.show}
        for health, word in HEALTH.items()
    ]
    html = render(
        "overview.html.j2",
        counts=counts,
        cluster=view.cluster,
        health_words=HEALTH,
    )
    board(html, key="overview")
    board(alerts_html(view), key="alerts")
    found = _chosen(groups, view)
    known = {(row["cluster"], row["group_id"]): row for row in view.ask("since", since=view.since)}
    clusters = {group["cluster"] for group in groups}
    html = render(
        "groups.html.j2",
        groups=[_group(row, view, known.get((row["cluster"], row["group_id"]))) for row in found[:_MOST_GROUPS]],
        many_clusters=len(clusters) > 1,
        nothing="No group matches." if groups else "No active groups.",
        health_words=HEALTH,
    )
    board(html, key="groups")
    if len(found) > _MOST_GROUPS:
        st.caption(f"{_MOST_GROUPS} of {len(found):,} groups are shown, the worst first. Find the others by name.")
    decisions = view.ask("rebalances", cluster=view.cluster, group_id=None, since=view.since, most=_MOST_DECISIONS)
    html = render(
        "rebalances.html.j2",
        rows=rebalance_rows(decisions, view.clock),
        heading="Last decisions",
        remark="of all groups, the newest first",
        with_group=True,
        nothing="No rebalances in the period kept here.",
        footer=_unseen(view),
        health_words=HEALTH,
    )
    board(html, key="decisions")


def _chosen(groups: Sequence[Row], view: View) -> list[Row]:
    """Groups with the chosen health and the searched text in their names."""
    text = st.text_input(
        "Find a group", placeholder="Find a group", label_visibility="collapsed", key="find", width=360
    )
    wanted = next((health for health, word in HEALTH.items() if word == view.show), None)
    asked = text.strip().casefold()
    return [
        group
        for group in groups
        if (wanted is None or group["health"] == wanted) and (not asked or asked in group["group_id"].casefold())
    ]


def _group(row: Row, view: View, since: Row | None) -> dict[str, Any]:
    said = [reason.text for reason in words.reasons(row, view.clock, since)] or [words.calm(row)]
    return {
        "key": f"{row['cluster']}/{words.key_of(row['group_id'])}",
        "cluster": row["cluster"],
        "name": row["group_id"],
        "health": row["health"],
        "reason": said[0],
        "more": len(said) - 1,
        "all_reasons": "\n".join(said),
        "lag": row["lag_total"],
        "members": row["members"],
        "partitions": row["partitions"],
        "imbalance": row["imbalance"],
        "strategy": row["strategy"],
        "decided": view.clock.time(row["last_decision_time"]),
        "decided_whole": view.clock.whole(row["last_decision_time"]),
    }


def _unseen(view: View) -> str:
    totals: Counter[str] = Counter()
    for row in view.ask("unseen"):
        if view.cluster in {None, row["cluster"]}:
            totals[row["kind"]] += row["number"] or 0
    said = []
    if totals["quarantine"]:
        said.append(f"{words.number(totals['quarantine'])} records could not be decoded (table quarantine)")
    if totals["gap"]:
        said.append(f"{words.number(totals['gap'])} ranges were gone before they were read (table gaps)")
    return f"Not included: {'; '.join(said)}." if said else ""
