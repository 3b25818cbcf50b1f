"""Who should own what, and who does: a matrix of members and what they own.

They own partitions, in a streams group tasks, in a Connect group connectors and their tasks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.format import Row

# People scan a few dozen rows; in larger groups drifted partitions come first, and the rest is only counted. Nor should
# a browser get a hundred thousand cells every few seconds.
MOST_ROWS = 120
MOST_MEMBERS = 40

AS_EXPECTED, WRONG, EXPECTED_HERE, UNJUDGED = "ok", "wrong", "expected", "unjudged"
STANDBY, WARMUP = "standby", "warmup"

_CELLS: Final = {
    AS_EXPECTED: "owns it, and should",
    WRONG: "owns it, and should not",
    EXPECTED_HERE: "should own it, and does not",
    UNJUDGED: "owns it; who should is not known",
    STANDBY: "has a standby task",
    WARMUP: "has a warm-up task",
}
_SAYS: Final = {
    "unassigned": "without an owner",
    "doubly_assigned": "with two owners",
    "not_subscribed": "not subscribed",
    "standby_beside_active": "standby beside active",
    "not_in_topology": "not in the topology",
}
_LAG_SIGNS: Final = {"stopped": "■", "stalled": "■", "falling_behind": "▲", "rewound": "↶", "ahead": "»"}

_METHODS: Final = {"append_time": "the brokers' timestamps", "timestamps": "the producers' timestamps"}

_CONNECTOR: Final = -1
"""The number of a connector itself, beside its tasks."""

_UNITS: Final = {"connect": "unit"}
"""What owners own by protocol type, where it is no partition: connectors and tasks together."""

_SOUND: Final[Row] = {"kind": None, "expected": None, "actual": None}
"""What stands for a partition that did not drift."""


def owners(
    members: Sequence[Row], verdict: Row | None, partitions: Sequence[Row], protocol_type: str | None = None
) -> dict[str, Any]:
    """Values of `owners.html.j2`.

    Args:
        members: Rows of members.sql.
        verdict: The row of verdict.sql, if there is one.
        partitions: Rows of partitions.sql; unowned partitions that the group subscribes to get a row, too.
        protocol_type: The group's.
    """
    of_tasks = any(member.get("tasks") for member in members)
    unit = "task" if of_tasks else _UNITS.get(protocol_type or "", "partition")
    why_not = _why_not(members, verdict)
    drifted = verdict["drifted_partitions"] or () if verdict is not None and not why_not else ()
    owned: dict[tuple[str, int], list[str]] = defaultdict(list)
    spare: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for place, member_id, kind in _owned_by(members):
        if kind in _CELLS:
            spare[place][member_id] = kind
        else:
            owned[place].append(member_id)
    if of_tasks:
        lag = _lag_of_tasks(partitions)
    else:
        lag = {
            (row["topic"], row["partition"]): row
            for row in partitions
            if row["subscribed"] or (row["topic"], row["partition"]) in owned
        }
    drift = {(_topic_of(item), item["partition"]): item for item in drifted}
    everything = {*owned, *spare, *lag, *drift}
    # If there are too many, those that drifted come first, then the others in order.
    places = sorted(sorted(everything, key=lambda place: (place not in drift, place))[:MOST_ROWS])
    columns = _columns(members, drifted)
    clients = Counter(member["client_id"] for member in columns)
    names = {member["member_id"]: _short(member, clients) for member in columns}
    rows = []
    for topic, partition in places:
        item = drift.get((topic, partition), _SOUND)
        actual = owned.get((topic, partition)) or item["actual"] or ()
        rows.append(
            {
                "topic": topic,
                "partition": partition,
                "name": "connector" if partition == _CONNECTOR else partition,
                "kind": item["kind"],
                "cells": spare.get((topic, partition), {}) | _cells(item, actual, judged=not why_not),
                "lag": lag.get((topic, partition)),
                "say": _say(item, actual, names),
                "title": _say(item, actual, {}),
            }
        )
    used = {row["cells"].get(member) for row in rows for member in names}
    hidden = {f"{unit}s": len(everything) - len(rows), "members": len(members) - len(columns)}
    remark = [] if why_not or verdict is None else _judged(verdict, len(drifted), words.counted(len(everything), unit))
    remark += [f"{number:,} more {what} are not shown" for what, number in hidden.items() if number]
    return {
        "members": columns,
        "names": names,
        "rows": rows,
        "unit": unit,
        "counts": Counter(topic for topic, _ in places),
        "read": _topics_read(partitions) if of_tasks else None,
        "remark": ", ".join(remark),
        "why_not": why_not,
        "legend": [mark for mark in _CELLS if mark in used],
        "cell_words": _CELLS,
        "lag_signs": _LAG_SIGNS,
        "lag_title": _lag_title,
    }


def lag_by_member(partitions: Iterable[Row]) -> Mapping[str, int]:
    """The lag of each member's partitions, from rows of partitions.sql; without members of which none is known."""
    lag: Counter[str] = Counter()
    for row in partitions:
        if row["member_id"] is not None and row["lag"] is not None:
            lag[row["member_id"]] += row["lag"]
    return dict(lag)


def _owned_by(members: Iterable[Row]) -> Iterator[tuple[tuple[str, int], str, str]]:
    """What members own: place, member id, and "active" or what a member has of it in another way."""
    for member in members:
        if member.get("tasks") is not None:
            for of in member["tasks"]:
                yield from (((of["subtopology"], task), member["member_id"], of["kind"]) for task in of["tasks"])
            continue
        for given in member["partitions"] or ():
            yield from (((_topic_of(given), number), member["member_id"], "active") for number in given["partitions"])


def _lag_of_tasks(partitions: Iterable[Row]) -> dict[tuple[str, int], Row]:
    """The lag of each task: that of its partitions together, unknown where one is; the rest is the worst one's."""
    of_tasks: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in partitions:
        if row.get("subtopology") is not None:
            of_tasks[row["subtopology"], row["partition"]].append(row)
    found: dict[tuple[str, int], Row] = {}
    for task, rows in of_tasks.items():
        worst = max(rows, key=lambda row: (row["lag"] is None, row["lag"] or 0))
        lags = [row["lag"] for row in rows]
        found[task] = {**worst, "lag": None if None in lags else sum(lags)}
    return found


def _topics_read(partitions: Iterable[Row]) -> Mapping[str, Sequence[str]]:
    """The topics that each subtopology reads."""
    topics: dict[str, dict[str, None]] = defaultdict(dict)
    for row in partitions:
        if row.get("subtopology") is not None:
            topics[row["subtopology"]][row["topic"]] = None
    return {name: list(of) for name, of in topics.items()}


def _topic_of(of: Row) -> str:
    """A topic as partitions.sql names it: with its broker where it is RocketMQ's."""
    broker = of.get("broker")
    if broker is None:
        return str(of["topic"])
    return f"{of['topic']}@{broker}"


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
        return False  # only seen in rounds: nobody knows whether both are of one generation
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


def _cells(item: Row, actual: Iterable[str], *, judged: bool) -> dict[str, str]:
    """Marks of a partition by member id."""
    expected = item["expected"]
    cells = {} if expected is None else {expected: EXPECTED_HERE}
    for owner in actual:
        right = AS_EXPECTED if item["kind"] is None or owner == expected else WRONG
        cells[owner] = right if judged else UNJUDGED
    return cells


def _judged(verdict: Row, drifted: int, everything: str) -> list[str]:
    # Groups that the broker assigns name a strategy only where their members ask for one.
    strategy = f" with {words.cut(verdict['strategy'], 30)}" if verdict["strategy"] else ""
    if verdict["basis"] == "configured":
        strategy += f", compared with {words.cut(verdict['expected_strategy'], 30)}, which is configured"
    return [
        f"{drifted} of {everything} drifted",
        f"as decided at {words.time(verdict['record_time'])}{strategy}",
    ]


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
    # A share group commits nothing.
    begin = "committed" if lag.get("done_records") is None else "start offset"
    parts = [
        f"{said}{by}{why}: {begin} {words.number(lag['committed_offset'])}, end {words.number(lag['high_watermark'])}"
    ]
    if lag["lag_read_committed"] != lag["lag"]:
        read, stable = words.number(lag["lag_read_committed"]), words.number(lag["last_stable_offset"])
        parts.append(f"read committed: lag {read}, up to {stable}")
    if lag["lost_records"]:
        parts.append(f"{words.counted(lag['lost_records'], 'record')} lost: deleted before they were read")
    if lag.get("done_records") is not None:
        parts.append(_deliveries(lag))
    if lag["oldest_unread_method"] not in {None, "rounds"}:
        parts.append(f"time behind by {_METHODS.get(lag['oldest_unread_method'], lag['oldest_unread_method'])}")
    return "\n".join(parts)


def _deliveries(lag: Row) -> str:
    """What members of a share group have done beyond its start offset."""
    said = [f"{words.counted(lag['done_records'], 'record')} done beyond the start offset"]
    if lag["archived_records"]:
        said.append(f"{words.number(lag['archived_records'])} of them archived")
    if lag["released_records"]:
        most = words.number(lag["delivery_count_max"])
        said.append(f"{words.number(lag['released_records'])} came back, after up to {most} deliveries")
    for column, what in (("given_up_records", "given up"), ("rejected_records", "rejected")):
        if lag[column]:
            said.append(f"{words.number(lag[column])} just {what}")
    return ", ".join(said)


def _say(item: Row, actual: Sequence[str], names: Mapping[str, str]) -> str:
    if item["kind"] is None:
        return "" if actual else "without an owner"
    said = [_SAYS.get(item["kind"], item["kind"].replace("_", " "))]
    if actual:
        said.append(f"is with {' and '.join(_named(member, names) for member in actual)}")
    if item["expected"] is not None:
        said.append(f"should be with {_named(item['expected'], names)}")
    return ", ".join(said)


def _named(member: str, names: Mapping[str, str]) -> str:
    return names.get(member) or words.cut(member, 200)
