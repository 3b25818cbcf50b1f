"""One group: problems, expected and actual owners, lag and rebalances over time, members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from dashboards import format as words
from dashboards.alerts import alerts_html
from dashboards.charts import Heard, lag_chart, rebalance_chart
from dashboards.html import board, render
from dashboards.matrix import AS_EXPECTED, EXPECTED_HERE, UNJUDGED, WRONG, Matrix, MatrixRow, matrix
from dashboards.rebalances import rebalance_rows
from dashboards.view import HEALTH, View
from dashboards.what_if import what_if_html

__all__ = ["group_view"]

Row = Mapping[str, Any]

_SPANS = {
    "15 min": timedelta(minutes=15),
    "1 h": timedelta(hours=1),
    "6 h": timedelta(hours=6),
    "24 h": timedelta(hours=24),
}
_SPAN = "1 h"
_STEPS = {"15 min": "second", "1 h": "second", "6 h": "minute", "24 h": "minute"}

_MOST_DECISIONS = 200
_SHOWN_DECISIONS = 15
_MOST_MEMBERS = 100

_CELLS = {
    AS_EXPECTED: "owns it, and should",
    WRONG: "owns it, and should not",
    EXPECTED_HERE: "should own it, and does not",
    UNJUDGED: "owns it; who should is not known",
}
_SAYS = {"unassigned": "without an owner", "doubly_assigned": "with two owners", "not_subscribed": "not asked for"}
_LAG_SIGNS = {"stopped": "■", "stalled": "■", "falling_behind": "▲", "rewound": "↶", "ahead": "»"}


def group_view(view: View) -> None:
    """Draw the group."""
    group = _find(view)
    if group is None:
        board(_not_there(view), key="group")
        return
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    since = next((r for r in view.ask("since", since=view.since) if all(r[k] == v for k, v in name.items())), None)
    members, partitions = view.ask("members", **name), view.ask("partitions", **name)
    verdict = next(iter(view.ask("verdict", **name)), None)
    decisions = view.ask("rebalances", **name, since=view.since, most=_MOST_DECISIONS)
    board(_head(group, since, verdict, view), key="group")
    board(alerts_html(view, group["group_id"]), key="alerts")
    laid_out = matrix(members, verdict, partitions)
    board(_matrix(laid_out, verdict, view), key="matrix")
    board(_charts(group, decisions, view), key="charts")
    html = render(
        "rebalances.html.j2",
        rows=rebalance_rows(decisions[:_SHOWN_DECISIONS], view.clock),
        heading="Rebalances",
        remark=_counted(len(decisions), _SHOWN_DECISIONS, "decision"),
        with_group=False,
        nothing="No decisions in the period kept here.",
        footer="",
        health_words=HEALTH,
    )
    board(html, key="rebalances")
    board(what_if_html(view.ask("what_if", **name), verdict, view.clock), key="what-if")
    board(_members(members, partitions), key="members")


def _find(view: View) -> Row | None:
    groups = view.groups(view.cluster)
    named = [group for group in groups if group["group_id"] == view.group]
    return next(iter(named or [g for g in groups if words.key_of(g["group_id"]) == view.group]), None)


def _not_there(view: View) -> str:
    row = {
        "name": view.group or "",
        "health": -1,
        "reasons": [],
        "calm": (
            "No active group has this name"
            + (f" in {words.visible(view.cluster)}" if view.cluster else "")
            + ": it was deleted, is not watched, or never was."
        ),
        "facts": [],
    }
    return render("group.html.j2", group=row, health_words=HEALTH)


def _head(group: Row, since: Row | None, verdict: Row | None, view: View) -> str:
    clock = view.clock
    library = verdict["matching_library"] if verdict is not None and group["verdict"] == "identical" else None
    facts = [
        ("lag", words.number(group["lag_total"]), f"largest of one partition: {words.number(group['lag_max'])}"),
        ("members", words.number(group["members"]), ""),
        ("partitions", words.number(group["partitions"]), f"of {group['topics']} topics"),
        ("imbalance", _imbalance(group), "max / mean - 1 of partitions per member, and the least that could be"),
        ("verdict", group["verdict"].replace("_", " "), words.visible(group["verdict_reason"] or "")),
        (
            "recomputed as",
            words.cut(library or words.DASH, 32),
            "client library, or broker, that gives this assignment, and the first release that computes like it",
        ),
        ("strategy", words.cut(group["strategy"] or words.DASH, 32), words.visible(group["strategy"] or "")),
        ("generation", words.number(group["generation"]), ""),
        ("state", words.cut(group["state"] or words.DASH, 24), ""),
        ("rebalanced", clock.time(group["last_decision_time"]), clock.whole(group["last_decision_time"])),
    ]
    row = {
        "name": group["group_id"],
        "health": group["health"],
        "reasons": [*words.reasons(group, clock, since), *words.passing(group, clock)],
        "calm": words.calm(group),
        "facts": [{"word": word, "value": value, "title": title} for word, value, title in facts],
    }
    return render("group.html.j2", group=row, health_words=HEALTH)


def _imbalance(group: Row) -> str:
    if group["imbalance"] is None:
        return words.DASH
    return f"{words.ratio(group['imbalance'])}, could be {words.ratio(group['imbalance_optimal'])}"


def _matrix(laid_out: Matrix, verdict: Row | None, view: View) -> str:
    drifted = sum(row.kind is not None for row in laid_out.rows) + laid_out.hidden_drifted
    remark = []
    if laid_out.judged and verdict is not None:
        when = view.clock.time(verdict["record_time"])
        remark.append(f"{drifted} of {len(laid_out.rows) + laid_out.hidden_rows} partitions drifted")
        remark.append(f"as decided at {when} with {words.cut(verdict['strategy'] or 'no strategy', 30)}")
    if laid_out.hidden_rows:
        remark.append(f"{laid_out.hidden_rows:,} more partitions are not shown")
    if laid_out.hidden_members:
        remark.append(f"{laid_out.hidden_members:,} more members are not shown")
    clients = Counter(member["client_id"] for member in laid_out.members)
    names = {member["member_id"]: _short(member, clients) for member in laid_out.members}
    return render(
        "matrix.html.j2",
        members=[_column(member, names) for member in laid_out.members],
        rows=_matrix_rows(laid_out, names),
        remark=", ".join(remark),
        why_not=laid_out.why_not,
        legend=laid_out.marks,
        cell_words=_CELLS,
        health_words=HEALTH,
    )


def _short(member: Row, clients: Mapping[str, int]) -> str:
    """The client id; with a distinguishing part of the member id where several members share it."""
    client = words.cut(member["client_id"] or member["member_id"], 16)
    if clients[member["client_id"]] == 1:
        return client
    return f"{words.cut(member['client_id'] or '', 9)} {words.visible(member['member_id'][-5:])}"


def _column(member: Row, names: Mapping[str, str]) -> dict[str, Any]:
    count = member["partition_count"]
    host, client = words.visible(member["client_host"] or ""), words.visible(member["client_id"] or "")
    return {
        "short": names[member["member_id"]],
        "leader": member["leader"],
        "below": "unreadable"
        if count is None
        else f"{words.number(count)} {'partition' if count == 1 else 'partitions'}",
        "title": f"{words.visible(member['member_id'])}\nclient {client}\nhost {host}",
    }


def _matrix_rows(laid_out: Matrix, names: Mapping[str, str]) -> list[dict[str, Any]]:
    of_topic = Counter(row.topic for row in laid_out.rows)
    found: list[dict[str, Any]] = []
    topic = None
    for row in laid_out.rows:
        new = row.topic != topic
        topic = row.topic
        lag = row.lag or {}
        status = lag.get("lag_status") or ""
        found.append(
            {
                "topic": topic if new else None,
                "topic_says": _counted(of_topic[topic], of_topic[topic], "partition"),
                "key": f"{words.key_of(topic)}/{row.partition}",
                "partition": row.partition,
                "lag": lag.get("lag"),
                "lag_sign": _LAG_SIGNS.get(status, ""),
                "lag_title": _lag_title(lag),
                "cells": [row.cells.get(at, "") for at in range(len(laid_out.members))],
                "drift": row.kind is not None,
                "say": _say(row, names),
                "say_title": _say(row, {}),
            }
        )
    return found


def _lag_title(lag: Row) -> str:
    if not lag:
        return ""
    said = (lag["lag_status"] or "").replace("_", " ")
    why = f" ({lag['reason'].replace('_', ' ')})" if lag["reason"] else ""
    by = f" by {words.number(lag['ahead_by'])}" if lag["ahead_by"] else ""
    return (
        f"{said}{by}{why}: committed {words.number(lag['committed_offset'])}, end {words.number(lag['high_watermark'])}"
    )


def _say(row: MatrixRow, names: Mapping[str, str]) -> str:
    if row.kind is None:
        return "" if row.actual else "without an owner"

    def name(member: str) -> str:
        return names.get(member) or words.visible(member)

    parts = [_SAYS.get(row.kind, row.kind.replace("_", " "))]
    if row.actual:
        parts.append(f"is with {' and '.join(name(member) for member in row.actual)}")
    if row.expected is not None:
        parts.append(f"should be with {name(row.expected)}")
    return ", ".join(parts)


def _charts(group: Row, decisions: Sequence[Row], view: View) -> str:
    chosen = view.span if view.span in _SPANS else _SPAN
    span = (view.now - _SPANS[chosen], view.now)
    name = {"cluster": group["cluster"], "group_id": group["group_id"]}
    # (All rows in memory, so that the line starts at the left edge with the value that held there.)
    rows = view.ask("lag", **name, since=view.since, step=_STEPS[chosen])
    shown = [row for row in decisions if row["record_time"] >= span[0]]
    newest = next((r["round_time"] for r in view.ask("rounds") if r["cluster"] == group["cluster"]), view.now)
    until = min(newest, view.now)  # a broker's clock may be ahead
    return render(
        "charts.html.j2",
        lag=lag_chart(rows, shown, span, view.clock, Heard(until, view.lake.reach)),
        moves=rebalance_chart(shown, span, view.clock),
        spans=list(_SPANS),
        span=chosen,
        cluster=group["cluster"],
        group=words.key_of(group["group_id"]),
    )


def _members(members: Sequence[Row], partitions: Sequence[Row]) -> str:
    lag: Counter[str] = Counter()
    for row in partitions:
        if row["member_id"] is not None and row["lag"] is not None:
            lag[row["member_id"]] += row["lag"]
    shown = [
        {
            "key": member["member_id"],
            "client": member["client_id"] or "",
            "id": member["member_id"],
            "host": member["client_host"] or "",
            "instance": member["group_instance_id"],
            "rack": member["rack"],
            "leader": member["leader"],
            "partitions": member["partition_count"],
            "lag": lag.get(member["member_id"]),
        }
        for member in members[:_MOST_MEMBERS]
    ]
    return render(
        "members.html.j2",
        members=shown,
        remark=_counted(len(members), _MOST_MEMBERS, "member"),
        nothing="The log shows no members.",
        health_words=HEALTH,
    )


def _counted(number: int, most: int, word: str) -> str:
    text = f"{number:,} {word}{'' if number == 1 else 's'}"
    return f"{text}, the first {most} shown" if number > most else text
