"""Who should own what, and who does: a matrix of partitions and members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row

__all__ = ["MOST_MEMBERS", "MOST_ROWS", "Matrix", "MatrixRow", "lag_by_member", "matrix", "owners"]

# People scan a few dozen rows; in larger groups drifted partitions come first, and the rest is only counted. Nor should
# a browser get a hundred thousand cells every few seconds.
MOST_ROWS = 120
MOST_MEMBERS = 40

AS_EXPECTED, WRONG, EXPECTED_HERE, UNJUDGED = "ok", "wrong", "expected", "unjudged"
"""Cells: owned as expected; owned but not expected; expected but not owned; owned, with the expected owner unknown."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One partition.

    Attributes:
        topic: Name of the topic; with its broker where it is RocketMQ's ("orders@broker-a").
        partition: Its number.
        cells: Kind of cell by index of the member.
        kind: Kind of drift; None without drift.
        expected: Member id of the expected owner, where it differs and is known.
        actual: Member ids of the owners.
        lag: The partition's row of partitions.sql; None if there is none.
    """

    topic: str
    partition: int
    cells: dict[int, str]
    kind: str | None
    expected: str | None
    actual: tuple[str, ...]
    lag: Row | None


@dataclass(frozen=True, slots=True)
class Matrix:
    """The matrix of one group.

    Attributes:
        members: Rows of members.sql: the columns.
        rows: By topic and partition.
        hidden_rows: Partitions that are not shown; none of them drifted unless `hidden_drifted`.
        hidden_drifted: Hidden partitions that drifted.
        hidden_members: Members that are not shown.
        judged: Whether the expected owners are known.
        why_not: The reason if they are not; else "".
    """

    members: Sequence[Row]
    rows: Sequence[MatrixRow]
    hidden_rows: int = 0
    hidden_drifted: int = 0
    hidden_members: int = 0
    judged: bool = True
    why_not: str = ""

    @property
    def marks(self) -> list[str]:
        """Kinds of cells in the matrix, for its legend."""
        used = {cell for row in self.rows for cell in row.cells.values()}
        return [kind for kind in (AS_EXPECTED, WRONG, EXPECTED_HERE, UNJUDGED) if kind in used]


def matrix(members: Sequence[Row], verdict: Row | None, partitions: Sequence[Row]) -> Matrix:
    """Build the matrix of one group.

    Args:
        members: Rows of members.sql.
        verdict: The row of verdict.sql, if there is one.
        partitions: Rows of partitions.sql; unowned partitions that the group subscribes to get a row, too.
    """
    why_not = _why_not(members, verdict)
    drifted = verdict["drifted_partitions"] or () if verdict is not None and not why_not else ()
    owners: dict[tuple[str, int], list[str]] = {}
    for member in members:
        for given in member["partitions"] or ():
            for partition in given["partitions"]:
                owners.setdefault((_topic_of(given), partition), []).append(member["member_id"])
    lag = {
        (row["topic"], row["partition"]): row
        for row in partitions
        if row["subscribed"] or (row["topic"], row["partition"]) in owners
    }
    drift = {(_topic_of(item), item["partition"]): item for item in drifted}
    everything = {*owners, *lag, *drift}
    # If there are too many, those that drifted come first, then the others in order.
    places = sorted(sorted(everything, key=lambda place: (place not in drift, place))[:MOST_ROWS])
    columns = _columns(members, drifted)
    at = {member["member_id"]: column for column, member in enumerate(columns)}
    rows = [
        _laid(place, owners.get(place, []), drift.get(place), lag.get(place), at, judged=not why_not)
        for place in places
    ]
    return Matrix(
        members=columns,
        rows=rows,
        hidden_rows=len(everything) - len(rows),
        hidden_drifted=len(drifted) - sum(row.kind is not None for row in rows),
        hidden_members=len(members) - len(columns),
        judged=not why_not,
        why_not=why_not,
    )


def _topic_of(of: Row) -> str:
    """A topic as partitions.sql names it: with its broker where it is RocketMQ's."""
    broker = of.get("broker")
    return str(of["topic"]) if broker is None else f"{of['topic']}@{broker}"


def _why_not(members: Sequence[Row], verdict: Row | None) -> str:
    if not members:
        return "This group has no members that are known."
    newest = max(members, key=lambda member: member["decision"])
    if verdict is None or (verdict["decision"] < newest["decision"] and not _same_decision(verdict, newest)):
        return "The newest decision has no verdict yet: this shows who owns each partition, not who should."
    if verdict["verdict"] not in {"identical", "drifted"}:
        why = verdict["reason"] or "no reason was given"
        return f"This shows who owns each partition. Who should own it cannot be recomputed: {why}."
    if verdict["basis"] == "configured" and not verdict["drifted_partitions"]:
        return f"This shows who owns each partition: {verdict['reason']}."
    ids = {member["member_id"] for member in members}
    if any(not ids.issuperset(_involved(item)) for item in verdict["drifted_partitions"] or ()):
        return "This shows who owns each partition. A member that had drifted partitions has left since."
    return ""


def _same_decision(verdict: Row, member: Row) -> bool:
    """Whether a newer record of a member belongs to the judged decision: then a static member only came back."""
    if verdict["generation"] is None:
        return False  # (only seen in rounds: nobody knows whether both are of one generation)
    return bool(verdict["incarnation"] == member["incarnation"] and verdict["generation"] == member["generation"])


def _involved(item: Row) -> set[str]:
    """Members that a drifted partition concerns."""
    return {name for name in (item["expected"], *(item["actual"] or ())) if name is not None}


def _columns(members: Sequence[Row], drifted: Sequence[Row]) -> Sequence[Row]:
    if len(members) <= MOST_MEMBERS:
        return members
    involved = {name for item in drifted for name in _involved(item)}
    first = [m for m in members if m["member_id"] in involved] + [m for m in members if m["member_id"] not in involved]
    chosen = {m["member_id"] for m in first[:MOST_MEMBERS]}
    return [m for m in members if m["member_id"] in chosen]


def _laid(
    place: tuple[str, int],
    found: Sequence[str],
    drift: Row | None,
    lag: Row | None,
    at: Mapping[str, int],
    *,
    judged: bool,
) -> MatrixRow:
    owners = tuple(found or (drift["actual"] or () if drift is not None else ()))
    expected: str | None = drift["expected"] if drift is not None else None
    cells = {at[expected]: EXPECTED_HERE} if expected is not None and expected in at else {}
    for owner in owners:
        if owner in at:
            right = AS_EXPECTED if drift is None or owner == expected else WRONG
            cells[at[owner]] = right if judged else UNJUDGED
    return MatrixRow(*place, cells, drift["kind"] if drift is not None else None, expected, owners, lag)


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


def lag_by_member(partitions: Iterable[Row]) -> Mapping[str, int]:
    """The lag of each member's partitions, from rows of partitions.sql; without members of which none is known."""
    lag: Counter[str] = Counter()
    for row in partitions:
        if row["member_id"] is not None and row["lag"] is not None:
            lag[row["member_id"]] += row["lag"]
    return dict(lag)


def owners(members: Sequence[Row], verdict: Row | None, partitions: Sequence[Row]) -> dict[str, Any]:
    """Values of `owners.html.j2`.

    Args:
        members: Rows of members.sql.
        verdict: The row of verdict.sql, if there is one.
        partitions: Rows of partitions.sql.
    """
    laid_out = matrix(members, verdict, partitions)
    clients = Counter(member["client_id"] for member in laid_out.members)
    names = {member["member_id"]: _short(member, clients) for member in laid_out.members}
    return {
        "members": laid_out.members,
        "names": names,
        "rows": [(row, _say(row, names), _say(row, {})) for row in laid_out.rows],
        "partitions": Counter(row.topic for row in laid_out.rows),
        "remark": _remark(laid_out, verdict),
        "why_not": laid_out.why_not,
        "legend": laid_out.marks,
        "cell_words": _CELLS,
        "lag_signs": _LAG_SIGNS,
        "lag_title": _lag_title,
    }


def _remark(laid_out: Matrix, verdict: Row | None) -> str:
    drifted = sum(row.kind is not None for row in laid_out.rows) + laid_out.hidden_drifted
    remark = []
    if laid_out.judged and verdict is not None:
        remark.append(f"{drifted} of {len(laid_out.rows) + laid_out.hidden_rows} partitions drifted")
        strategy = words.cut(verdict["strategy"] or "no strategy", 30)
        if verdict["basis"] == "configured":
            strategy += f", compared with {words.cut(verdict['expected_strategy'], 30)}, which is configured"
        remark.append(f"as decided at {words.time(verdict['record_time'])} with {strategy}")
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


def _lag_title(lag: Row | None) -> str:
    if lag is None:
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
