"""The verdict on a decision, and clients whose bytes identify the leader's library."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from assignors import Assignment, Group, PartitionRacks, Strategy
from assignors.jsonl import assign_line
from streaming.groups import Rows, unpack_inputs
from streaming.groups.rows import DriftRow, WhatIfRow
from streaming.records import Member
from tests.groups.build import Life, make_observation, make_record, make_topic

LIBRDKAFKA: dict[str, Any] = {"user_data": b"", "client_id": "rdkafka"}
KAFKA_PYTHON: dict[str, Any] = {"user_data": b"", "subscription_version": 0, "client_id": "kafka-python-3.0.12"}
JAVA: dict[str, Any] = {}


FIRST_TAKES_ALL = f"{__name__}:first_takes_all"
"""Where a user's settings find this strategy."""


def first_takes_all(group: Group, _racks: PartitionRacks | None) -> Assignment:
    first = min(member.member_id for member in group.members)
    return {first: {topic: range(count) for topic, count in group.partitions_per_topic.items()}}


def seen_for_long(life: Life, *topics: tuple[str, int]) -> None:
    """Let rounds show these topics for longer than the grace period, up to record 2000."""
    for position in (1, 1990):
        life.take(make_observation(position, *(make_topic(topic, count) for topic, count in topics)))
    life.rows.drift.clear()


def verdict_of(life: Life) -> DriftRow:
    """The only verdict of a life, after a check against its inputs."""
    (row,) = life.rows.drift
    recompute_all(life.rows, life.config.custom.by_name())
    return row


def judged(*members: Member, counts: Mapping[str, int | None], protocol: str = "range", **changes: Any) -> DriftRow:
    """The verdict on a first decision, with the round right after it."""
    life = Life(configured=changes.pop("configured", None))
    life.take(
        make_record(5, members, protocol=protocol, **changes),
        make_observation(10, *(make_topic(topic, count) for topic, count in counts.items())),
    )
    return verdict_of(life)


def the_row(rows: list[WhatIfRow], strategy: str) -> WhatIfRow:
    (row,) = (row for row in rows if row.strategy == strategy)
    return row


def with_assignment(members: Sequence[Member], assignment: Assignment) -> list[Member]:
    """The members of a decision, each with what its leader gave it."""
    return [
        msgspec.structs.replace(
            one, assigned=tuple((topic, tuple(of)) for topic, of in assignment.get(one.member_id, {}).items())
        )
        for one in members
    ]


Owned = dict[str, set[tuple[str, int]]]
"""Partitions by member; members without any are missing."""


def recompute_all(rows: Rows, custom: Mapping[str, Strategy] | None = None) -> Counter[str]:
    """Check every verdict that has inputs against them; returns the number of each verdict."""
    found: Counter[str] = Counter()
    for row in rows.drift:
        if row.inputs is None:
            continue
        actual = _members(rows, row.decision)
        answer, possible = recomputed(row, custom)
        if actual is None:
            continue
        found[row.verdict] += 1
        if row.verdict == "identical":
            assert actual in possible, (row, answer)
        elif row.verdict == "drifted" and possible:
            (expected,) = possible
            assert actual != expected, row
            drifted = {(d.topic, d.partition): d.expected for d in row.drifted_partitions}
            assert {place: _owner(expected, place) for place in drifted} == drifted
            assert _without(expected, drifted) == _without(actual, drifted)
        elif (row.reason or "").startswith(("it fits a leader that did not have", "it fits a partition count")):
            assert actual in possible, (row, answer)
    return found


def recomputed(row: DriftRow, custom: Mapping[str, Strategy] | None = None) -> tuple[dict[str, Any], list[Owned]]:
    """The answer of `evenkeel assign`, and the assignments that it considers possible: one, several, or none."""
    assert row.inputs is not None
    line = json.loads(unpack_inputs(row.inputs))
    answer = assign_line(line, custom)
    names = {topic["id"]: name for name, topic in line.get("topics", {}).items()}
    listed = [answer["assignment"]] if "assignment" in answer else answer.get("possible", [])
    return answer, [
        {member: {(names.get(t, t), p) for t, p in pairs} for member, pairs in one.items() if pairs} for one in listed
    ]


def _members(rows: Rows, decision: int) -> Owned | None:
    """Partitions of a decision's members; None if unknown: in a storm, or if the group ended before it was named."""
    found = [row for row in rows.members if row.decision == decision and not row.ended]
    if found and all(member.tasks is not None for member in found):
        active = {
            m.member_id: {(of.subtopology, p) for of in m.tasks or () if of.kind == "active" for p in of.tasks}
            for m in found
        }
        return {member: places for member, places in active.items() if places}
    if not found or any(member.partitions is None for member in found):
        return None
    owned = {m.member_id: {(of.topic, p) for of in m.partitions or () for p in of.partitions} for m in found}
    return {member: places for member, places in owned.items() if places}


def _owner(owned: Owned, place: tuple[str, int]) -> str | None:
    return next((member for member, places in owned.items() if place in places), None)


def _without(owned: Owned, places: Mapping[tuple[str, int], object]) -> Owned:
    left = {member: of - places.keys() for member, of in owned.items()}
    return {member: of for member, of in left.items() if of}
