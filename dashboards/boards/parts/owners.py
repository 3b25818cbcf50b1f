"""Who should own what, and who does: the matrix of partitions and members as values for its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.matrix import AS_EXPECTED, EXPECTED_HERE, UNJUDGED, WRONG, Matrix, MatrixRow, matrix
from dashboards.format import Clock, Row

__all__ = ["owners"]

_CELLS: Final = {
    AS_EXPECTED: "owns it, and should",
    WRONG: "owns it, and should not",
    EXPECTED_HERE: "should own it, and does not",
    UNJUDGED: "owns it; who should is not known",
}
_SAYS: Final = {
    "unassigned": "without an owner",
    "doubly_assigned": "with two owners",
    "not_subscribed": "not subscribed",
}
_LAG_SIGNS: Final = {"stopped": "■", "stalled": "■", "falling_behind": "▲", "rewound": "↶", "ahead": "»"}

_METHODS: Final = {"append_time": "the brokers' timestamps", "timestamps": "the producers' timestamps"}

# With more members their names stand upright.
_MANY = 9


def owners(
    members: Sequence[Row], verdict: Row | None, partitions: Sequence[Row], clock: Clock, link: Callable[[str], str]
) -> dict[str, Any]:
    """Values of `owners.html.j2`.

    Args:
        members: Rows of members.sql.
        verdict: The row of verdict.sql, if there is one.
        partitions: Rows of partitions.sql.
        clock: The clock of the rendering.
        link: The address of a topic, by its name.
    """
    laid_out = matrix(members, verdict, partitions)
    clients = Counter(member["client_id"] for member in laid_out.members)
    names = {member["member_id"]: _short(member, clients) for member in laid_out.members}
    return {
        "members": [_column(member, names) for member in laid_out.members],
        "many": len(laid_out.members) > _MANY,
        "rows": _rows(laid_out, names, link),
        "remark": _remark(laid_out, verdict, clock),
        "why_not": laid_out.why_not,
        "legend": laid_out.marks,
        "cell_words": _CELLS,
    }


def _remark(laid_out: Matrix, verdict: Row | None, clock: Clock) -> str:
    drifted = sum(row.kind is not None for row in laid_out.rows) + laid_out.hidden_drifted
    remark = []
    if laid_out.judged and verdict is not None:
        remark.append(f"{drifted} of {len(laid_out.rows) + laid_out.hidden_rows} partitions drifted")
        strategy = words.cut(verdict["strategy"] or "no strategy", 30)
        if verdict["basis"] == "configured":
            strategy += f", compared with {words.cut(verdict['expected_strategy'], 30)}, which is configured"
        remark.append(f"as decided at {clock.time(verdict['record_time'])} with {strategy}")
    if laid_out.hidden_rows:
        remark.append(f"{laid_out.hidden_rows:,} more partitions are not shown")
    if laid_out.hidden_members:
        remark.append(f"{laid_out.hidden_members:,} more members are not shown")
    return ", ".join(remark)


def _short(member: Row, clients: Mapping[str, int]) -> str:
    """The client id; with a distinguishing part of the member id where several members share it."""
    if clients[member["client_id"]] == 1:
        return words.cut(member["client_id"] or member["member_id"], 16)
    return f"{words.cut(member['client_id'] or '', 9)} {words.visible(member['member_id'][-5:])}"


def _column(member: Row, names: Mapping[str, str]) -> dict[str, Any]:
    count = member["partition_count"]
    host, client = words.cut(member["client_host"] or "", 200), words.cut(member["client_id"] or "", 200)
    return {
        "short": names[member["member_id"]],
        "leader": member["leader"],
        "below": "unreadable" if count is None else words.counted(count, "partition"),
        "title": f"{words.cut(member['member_id'], 300)}\nclient {client}\nhost {host}",
    }


def _rows(laid_out: Matrix, names: Mapping[str, str], link: Callable[[str], str]) -> list[dict[str, Any]]:
    of_topic = Counter(row.topic for row in laid_out.rows)
    found: list[dict[str, Any]] = []
    topic = None
    for row in laid_out.rows:
        new = row.topic != topic
        topic = row.topic
        lag = row.lag or {}
        found.append(
            {
                "topic": topic if new else None,
                "topic_href": link(topic) if new else "",
                "topic_says": words.counted(of_topic[topic], "partition"),
                "key": f"{words.key_of(topic)}/{row.partition}",
                "partition": row.partition,
                "lag": lag.get("lag"),
                "lag_sign": _LAG_SIGNS.get(lag.get("lag_status") or "", ""),
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
    parts = [
        f"{said}{by}{why}: committed {words.number(lag['committed_offset'])}, end {words.number(lag['high_watermark'])}"
    ]
    if lag["lag_read_committed"] != lag["lag"]:
        read, stable = words.number(lag["lag_read_committed"]), words.number(lag["last_stable_offset"])
        parts.append(f"read committed: lag {read}, up to {stable}")
    if lag["lost_records"]:
        parts.append(f"{words.counted(lag['lost_records'], 'record')} lost: deleted before they were read")
    if lag["oldest_unread_method"] not in {None, "rounds"}:
        parts.append(f"time behind by {_METHODS.get(lag['oldest_unread_method'], lag['oldest_unread_method'])}")
    return "\n".join(parts)


def _say(row: MatrixRow, names: Mapping[str, str]) -> str:
    if row.kind is None:
        return "" if row.actual else "without an owner"

    def name(member: str) -> str:
        return names.get(member) or words.cut(member, 200)

    parts = [_SAYS.get(row.kind, row.kind.replace("_", " "))]
    if row.actual:
        parts.append(f"is with {' and '.join(name(member) for member in row.actual)}")
    if row.expected is not None:
        parts.append(f"should be with {name(row.expected)}")
    return ", ".join(parts)
