"""Inputs of the core with Kafka-like defaults, and a group that processes them in the log's order."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from streaming.groups import GroupConfig, Rows, advance, decode_state, encode_state
from streaming.groups.rows import ChurnRow
from streaming.groups.state import GroupState
from streaming.records import (
    CommitWindow,
    Configured,
    GroupInput,
    GroupObservation,
    Member,
    MembershipRecord,
    MembershipTombstone,
    Seen,
    SeenClassic,
    SeenCommits,
    SeenModern,
    TopicObservation,
    merge_windows,
)

GROUP = "orders-app"
LOG_PARTITION = 7
SECOND = 1_000
MINUTE = 60_000

START = 1_767_225_600_000
"""2026-01-01 00:00 UTC, about the time of the first event in a test."""

CONFIG = GroupConfig(cluster="test")

Assigned = Mapping[str, Sequence[int]]
NOTHING: Assigned = {}


def make_member(
    member_id: str = "consumer-1-aaaa",
    topics: Sequence[str] | None = ("orders",),
    assigned: Assigned | None = NOTHING,
    **changes: Any,
) -> Member:
    """A member with a Java 3.4+ client; None for parts that cannot be decoded; changes are fields of `Member`."""
    fields: dict[str, Any] = {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "consumer-1",
        "client_host": "/127.0.0.1",
        "rebalance_timeout": 5 * MINUTE,
        "session_timeout": 45 * SECOND,
        "subscription_version": 3,
        "topics": None if topics is None else tuple(topics),
        "owned": (),
        "generation": None,
        "rack": None,
        "user_data": None,
        "assigned": None if assigned is None else tuple((topic, tuple(of)) for topic, of in assigned.items()),
    }
    return Member(**(fields | changes))


def make_record(
    record: int,
    members: Sequence[Member] = (),
    *,
    generation: int = 1,
    protocol: str | None = "range",
    time: int | None = None,
    **changes: Any,
) -> MembershipRecord:
    """A group metadata record as Kafka 4 writes it; the first member leads. Its time is START plus its offset in s."""
    at = START + record * SECOND if time is None else time
    fields: dict[str, Any] = {
        "record": record,
        "record_time": at,
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": protocol if members else None,
        "leader": members[0].member_id if members else None,
        "state_time": at - 20,
        "members": tuple(members),
        "value_version": 3,
        "log_partition": LOG_PARTITION,
    }
    return MembershipRecord(**(fields | changes))


def make_tombstone(record: int) -> MembershipTombstone:
    return MembershipTombstone(record, START + record * SECOND)


def make_commit(
    record: int, offset: int | None, *, topic: str = "orders", partition: int = 0, time: int | None = None
) -> CommitWindow:
    """One offset commit, or a tombstone (offset None), as the codec folds a single one."""
    at = START + record * SECOND if time is None else time
    gone = offset is None
    return CommitWindow(
        topic=topic,
        partition=partition,
        commits=0 if gone else 1,
        tombstones=1 if gone else 0,
        first_offset=-1 if offset is None else offset,
        first_commit_time=-1 if gone else at,
        first_record=record,
        offset=-1 if offset is None else offset,
        leader_epoch=-1,
        last_commit_time=-1 if gone else at,
        last_record=record,
        deleted=gone,
        step_back=0,
    )


def make_commits(record: int, *offsets: int | None, topic: str = "orders", partition: int = 0) -> CommitWindow:
    """Successive commits and tombstones of one partition, at successive log offsets, folded into one window."""
    window, *rest = (make_commit(record + i, o, topic=topic, partition=partition) for i, o in enumerate(offsets))
    for later in rest:
        window = merge_windows(window, later)
    return window


def make_topic(
    topic: str = "orders", partitions: int | None = 3, *, end: Any = 100, **changes: Any
) -> TopicObservation:
    """One topic of a round; `end` is one number for all partitions or a list; stable ends are the same."""
    count = partitions or 0
    ends = [end] * count if isinstance(end, int) else list(end)
    fields: dict[str, Any] = {
        "topic": topic,
        "topic_id": f"id-of-{topic}",
        "partitions": partitions,
        "high_watermarks": packed(ends),
        "last_stable_offsets": packed(ends),
        "log_start_offsets": packed([0] * count),
    }
    return TopicObservation(**(fields | changes))


def packed(offsets: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(offsets)}q", *offsets)


def make_observation(
    position: int, *topics: TopicObservation, time: int | None = None, **changes: Any
) -> GroupObservation:
    """A round whose log position is `position`; its time is START plus that in s, and it closes half a second later."""
    opened = START + position * SECOND if time is None else time
    fields: dict[str, Any] = {
        "round": position,
        "time": opened,
        "closed": opened + SECOND // 2,
        "log_partition": LOG_PARTITION,
        "log_position": position,
        "state": "Stable",
        "protocol_type": "consumer",
        "group_type": "classic",
        "gone": None,
        "held_since": None,
        "topics": topics,
        "cluster_id": "kafka-cluster-id",
    }
    return GroupObservation(**(fields | changes))


def make_look(
    number: int,
    *topics: TopicObservation,
    classic: SeenClassic | None = None,
    modern: SeenModern | None = None,
    commits: SeenCommits | None = None,
    looked: bool = True,
    absent_at: int = -1,
    **changes: Any,
) -> GroupObservation:
    """A round, of this number, of a group whose log is not read; otherwise as `make_observation`."""
    seen = Seen("admin", looked, absent_at, classic, modern, commits)
    given: dict[str, Any] = {"log_partition": -1, "seen": seen} | changes
    return make_observation(number, *topics, **given)


def declared(*clients: str) -> Configured:
    """Settings that declare these client libraries for the group, and no strategy."""
    return Configured("v1", None, clients)


class Life:
    """One group that processes events, one call of `advance` at a time; the state is packed in between.

    Attributes:
        state: Its present state.
        rows: All rows so far.
        configured: What rounds that say nothing else say of the group's settings.
    """

    def __init__(self, config: GroupConfig = CONFIG, configured: Configured | None = None) -> None:
        self.config, self.configured = config, configured
        self.state: GroupState | None = None
        self.rows = Rows()

    @classmethod
    def after(cls, *inputs: GroupInput) -> Life:
        """A group that has processed these inputs."""
        life = cls()
        life.take(*inputs)
        return life

    def take(self, *inputs: GroupInput) -> Rows:
        """Advance by these inputs; returns their rows."""
        told = [
            msgspec.structs.replace(one, configured=self.configured)
            if isinstance(one, GroupObservation) and one.configured is None
            else one
            for one in inputs
        ]
        after, rows = advance(self.state, GROUP, told, self.config)
        self.state = None if after is None else decode_state(*encode_state(after))
        for table in rows.__struct_fields__:
            getattr(self.rows, table).extend(getattr(rows, table))
        return rows


def even(topic: str, partitions: int, *member_ids: str, topics: Sequence[str] | None = None) -> tuple[Member, ...]:
    """Members of a group with `partitions` assigned evenly by range (computed here: quota and remainder)."""
    quota, larger = divmod(partitions, len(member_ids))
    members = []
    start = 0
    for index, member_id in enumerate(member_ids):
        stop = start + quota + (1 if index < larger else 0)
        assigned = {topic: range(start, stop)} if stop > start else {}
        members.append(make_member(member_id, topics or (topic,), assigned))
        start = stop
    return tuple(members)


def make_cooperative(
    record: int, generation: int, kept: Mapping[str, Sequence[int]] | None = None, **partitions: Sequence[int]
) -> MembershipRecord:
    """A generation of `cooperative-sticky` whose members, by name, own these partitions of topic x.

    `kept` are the partitions that they reported to own when they joined.
    """
    had = {name: (("x", tuple(owned)),) for name, owned in (kept or {}).items()}
    members = [
        make_member(name, ("x",), {"x": owned} if owned else {}, owned=had.get(name, ()))
        for name, owned in partitions.items()
    ]
    return make_record(record, members, generation=generation, protocol="cooperative-sticky")


def churn_of(*inputs: GroupInput) -> list[ChurnRow]:
    """The churn rows of a group that lives through these inputs, in the order in which they were written."""
    life = Life.after(*inputs)
    return life.rows.rebalance_churn


def decisions_of(*inputs: GroupInput) -> list[ChurnRow]:
    """The first revision of each churn row."""
    return [row for row in churn_of(*inputs) if row.revision == 1]


def causes_of(*inputs: GroupInput) -> list[str]:
    """The newest decision's causes, each with what it names: members, topic, value before and after."""
    causes = decisions_of(*inputs)[-1].causes or ()
    named = ((c.cause, *c.members, c.topic, c.before, c.after) for c in causes)
    return [" ".join(part for part in parts if part is not None) for parts in named]


def rows_in_batches(inputs: Sequence[GroupInput], cuts: Iterable[int] = ()) -> Rows:
    """Rows of a new group's life whose batches end before the inputs at `cuts`; in one batch without any."""
    life = Life()
    for start, stop in pairwise((0, *cuts, len(inputs))):
        life.take(*inputs[start:stop])
    return life.rows


def counted(rows: Rows) -> dict[str, Counter[object]]:
    """Rows by table, however they are ordered."""
    return {table: Counter(getattr(rows, table)) for table in rows.__struct_fields__}
