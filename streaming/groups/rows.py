"""The core's output rows: one class per table, one field per column, in the table's order.

The fields have the names of the columns in `streaming.tables.schema` (a test compares them). Times are ms since the
epoch, UTC, and dates are days since the epoch; the writer converts them to TIMESTAMP and DATE. None is NULL; the
column's comment says what that means.

The module is long because it has a line for each column of every table that the core writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from streaming.times import day_of

MOST: Final = 2**63 - 1
"""The tables hold int64, and so does the state."""

MOST_MS: Final = 2**53
"""Limit of sums of times, ms. Anyone with write access to the log can write absurd timestamps."""


class DriftedPartition(msgspec.Struct, frozen=True, array_like=True):
    """One partition whose owner is not the expected one."""

    topic: str
    partition: int
    kind: str
    expected: str | None
    actual: tuple[str, ...]
    broker: str | None = None


class Finding(msgspec.Struct, frozen=True, array_like=True):
    """A finding about a group, with the time since which it holds."""

    finding: str
    since: int
    detail: str


class HotPartition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A partition whose load alone is more than a member's fair share."""

    topic: str
    partition: int
    per_second: float


class TopicAssignment(msgspec.Struct, frozen=True, array_like=True):
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]
    broker: str | None = None


class MemberTasks(msgspec.Struct, frozen=True, array_like=True):
    """Tasks of one subtopology that a member of a streams group has."""

    kind: str
    subtopology: str
    tasks: tuple[int, ...]


class ReplacedMember(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A static member that came back under another member id."""

    group_instance_id: str
    old_member_id: str
    new_member_id: str


class RoundBroker(msgspec.Struct, frozen=True, array_like=True):
    """A broker that came or went, with the time of the first round that showed it so, ms."""

    broker: int
    host: str
    rack: str | None
    since: int


class Cause(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A cause of a rebalance, with its evidence (`streaming.groups.causes`).

    Attributes:
        cause: One of `CAUSES`.
        evidence: What shows it, in a few words.
        count: Members concerned, or topics where `topic` is None; None where it concerns neither.
        members: Ids of the first of the members.
        topic: Topic; None where it does not concern a single one.
        before: What it was at the previous decision; None where there is no such value.
        after: What it is at this one.
    """

    cause: str
    evidence: str
    count: int | None
    members: tuple[str, ...]
    topic: str | None
    before: str | None
    after: str | None


class _OfGroup(msgspec.Struct, frozen=True, array_like=True):
    """The first columns of a row about a group."""

    cluster: str
    group_id: str


class _OfDecision(_OfGroup, frozen=True, array_like=True):
    """The first columns of a row about one decision of a group."""

    decision: int
    source: str
    log_partition: int | None
    record_time: int
    event_date: int


class ChurnRow(_OfDecision, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """One row of `rebalance_churn`. State holds it too (`OpenCost`): add new columns at the end, with a default."""

    revision: int
    kind: str
    incarnation: int
    generation: int | None
    previous_generation: int | None = None
    generations_skipped: int | None = None
    follows: int | None = None
    protocol_type: str
    strategy: str | None
    leader: str | None = None
    members: int
    partitions: int
    joined: tuple[str, ...] | None
    left: tuple[str, ...]
    replaced: tuple[ReplacedMember, ...] = ()
    partitions_moved: int | None = None
    partitions_moved_optimal: int | None = None
    partitions_pending_handover: int = 0
    join_completed_time: int | None = None
    unassigned_partition_seconds_min: float | None = None
    unassigned_partition_seconds_max: float | None = None
    causes: tuple[Cause, ...] | None = None
    rebalance_protocol: str | None = None
    partitions_stopped_unmoved: int | None = None
    decided_time_min: int | None = None
    decided_time_max: int | None = None


def with_seconds(row: ChurnRow, least: int | None, most: int | None) -> ChurnRow:
    """The row with these bounds of the time without an owner, ms; None leaves one as it is."""
    low = row.unassigned_partition_seconds_min if least is None else round(min(MOST_MS, least) / 1000, 3)
    high = row.unassigned_partition_seconds_max if most is None else max(low or 0.0, round(most / 1000, 3))
    return msgspec.structs.replace(row, unassigned_partition_seconds_min=low, unassigned_partition_seconds_max=high)


class DriftRow(_OfDecision, frozen=True, array_like=True):
    """One row of `drift`."""

    topic: str | None
    incarnation: int
    generation: int | None
    round: int
    round_time: int
    strategy: str | None
    expected_strategy: str | None
    strategy_mismatch: bool | None
    verdict: str
    reason: str | None
    matching_library: str | None
    candidates: int
    drifted_count: int
    drifted_partitions: tuple[DriftedPartition, ...]
    inputs: bytes | None
    configuration_version: str | None
    basis: str | None
    own_verdict: str
    nearest_library: str | None
    nearest_differing: int | None


class LagRow(_OfGroup, frozen=True, array_like=True, gc=False):
    """One row of `lag`."""

    topic: str
    broker: str | None
    partition: int
    source: str
    round: int
    round_time: int
    event_date: int
    ended: bool
    committed_offset: int | None
    high_watermark: int | None
    last_stable_offset: int | None
    log_start_offset: int | None
    lag: int | None
    lag_read_committed: int | None
    lost_records: int | None
    ahead_by: int | None
    lag_status: str
    reason: str | None
    commits: int | None
    last_commit_time: int | None
    rewound_by: int
    offset_deleted: bool
    subscribed: bool
    member_id: str | None
    client_id: str | None
    client_host: str | None
    oldest_unread_time_min: int | None
    oldest_unread_time_max: int | None
    oldest_unread_method: str | None
    oldest_unread_reason: str | None
    produced_per_second: float | None
    consumed_per_second: float | None
    done_records: int | None = None
    archived_records: int | None = None
    released_records: int | None = None
    delivery_count_max: int | None = None
    given_up_records: int | None = None
    rejected_records: int | None = None
    subtopology: str | None = None


class GroupHealthRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `group_health`."""

    cluster: str
    cluster_id: str | None
    group_id: str
    source: str
    log_partition: int | None
    round: int
    round_time: int
    event_date: int
    ended: bool
    state: str
    group_type: str | None
    protocol_type: str | None
    strategy: str | None
    expected_strategy: str | None
    strategy_mismatch: bool | None
    incarnation: int | None
    generation: int | None
    last_decision_time: int | None
    members: int
    verdict: str
    verdict_reason: str | None
    drifted_count: int
    findings: tuple[Finding, ...]
    topics: int
    partitions: int
    assigned_partitions: int
    lag_total: int | None
    lag_read_committed_total: int | None
    lost_records: int
    lag_max: int | None
    lag_unknown: int
    lag_status: str
    commits: int | None
    imbalance: float | None
    imbalance_optimal: float | None
    time_behind_seconds_min: float | None
    time_behind_seconds_max: float | None
    time_behind_reason: str | None
    time_behind_topic: str | None
    time_behind_partition: int | None
    loses_data_in_seconds_min: float | None
    loses_data_in_seconds_max: float | None
    loses_data_reason: str | None
    loses_data_topic: str | None
    loses_data_partition: int | None
    loses_data_retention_seconds: float | None
    loses_data_by: str | None
    produced_per_second: float | None
    consumed_per_second: float | None
    load_imbalance: float | None
    load_imbalance_optimal_min: float | None
    load_imbalance_optimal_max: float | None
    hot_partitions: tuple[HotPartition, ...] | None
    verdict_basis: str | None


class MemberRow(_OfGroup, frozen=True, array_like=True):
    """One row of `members`."""

    decision: int
    member_id: str
    source: str
    log_partition: int | None
    record_time: int
    event_date: int
    ended: bool
    incarnation: int
    generation: int | None
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack: str | None
    leader: bool | None
    subscription: tuple[str, ...] | None
    partition_count: int | None
    partitions: tuple[TopicAssignment, ...] | None
    undecodable: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    repeat: int | None = None
    tasks: tuple[MemberTasks, ...] | None = None


class MemberLoadRow(_OfGroup, frozen=True, array_like=True):
    """One row of `member_load`."""

    member_id: str
    source: str
    round: int
    round_time: int
    event_date: int
    ended: bool
    client_id: str | None
    client_host: str | None
    partitions: int
    produced_per_second: float | None
    consumed_per_second: float | None
    share: float | None


class QuarantineRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `quarantine`."""

    cluster: str
    topic: str
    partition: int
    record_offset: int
    record_time: int
    event_date: int
    kind: str
    key_type: int | None
    value_version: int | None
    reason: str
    records: int
    last_record_offset: int
    key: bytes | None
    value: bytes | None
    key_size: int | None
    value_size: int | None
    sha256: str | None


class GapRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `gaps`."""

    cluster: str
    kind: str
    topic: str | None
    partition: int | None
    from_offset: int | None
    to_offset: int | None
    from_time: int | None
    to_time: int | None
    reason: str


class RoundRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `rounds`."""

    cluster: str
    cluster_id: str | None
    round: int
    round_time: int
    event_date: int
    closed_time: int
    interval_ms: int
    probe: str
    groups: int
    events: int
    log_partitions: int
    held_partitions: int
    log_records: int
    elapsed_ms: int
    opened_offset: int
    offsets_retention_minutes: int | None
    source: str | None = None
    brokers: int | None = None
    brokers_gone: tuple[RoundBroker, ...] | None = None
    brokers_joined: tuple[RoundBroker, ...] | None = None


class OpenTransactionRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `open_transactions`."""

    cluster: str
    log_partition: int
    round: int
    round_time: int
    event_date: int
    held: bool
    held_since: int
    held_offset: int
    waiting: int
    groups: int
    producer_id: int | None
    transactional_id: str | None
    repeat: int | None = None


class TopicRow(msgspec.Struct, frozen=True, array_like=True):
    """One row of `topics`."""

    cluster: str
    topic: str
    round: int
    round_time: int
    event_date: int
    ended: bool
    ended_reason: str | None = None
    topic_id: str | None = None
    partitions: int = 0
    offline_partitions: int = 0
    records_max: int | None = None
    produced_per_second: float | None = None
    produced_reason: str | None = None
    log_bytes: int | None = None
    produced_bytes_per_second_min: float | None = None
    bytes_reason: str | None = None
    rates_over_seconds: float | None = None
    groups: int = 0
    readers: tuple[str, ...] = ()
    read_by_nobody: bool | None = None
    read_by_nobody_since: int | None = None
    read_by_nobody_reason: str | None = None


class WhatIfRow(_OfDecision, frozen=True, array_like=True):
    """One row of `what_if`."""

    incarnation: int
    generation: int | None
    round: int
    round_time: int
    strategy: str
    runs: bool | None
    library: str | None
    partitions_moved: int | None = None
    partitions_moved_optimal: int | None = None
    imbalance: float | None = None
    imbalance_optimal: float | None = None
    reason: str | None = None
    load_imbalance: float | None = None
    configured: bool | None = None


class Rows(msgspec.Struct, array_like=True):
    """Rows by table; the field names are the tables' names.

    Rows are appended while one group advances, then packed.
    """

    rebalance_churn: list[ChurnRow] = []
    drift: list[DriftRow] = []
    lag: list[LagRow] = []
    group_health: list[GroupHealthRow] = []
    members: list[MemberRow] = []
    quarantine: list[QuarantineRow] = []
    gaps: list[GapRow] = []
    rounds: list[RoundRow] = []
    what_if: list[WhatIfRow] = []
    open_transactions: list[OpenTransactionRow] = []
    member_load: list[MemberLoadRow] = []
    topics: list[TopicRow] = []

    def __bool__(self) -> bool:
        """Whether any table has rows."""
        return any(getattr(self, table) for table in self.__struct_fields__)

    def change_members(
        self, before: Iterable[MemberRow], after: Sequence[MemberRow], decision: int, record_time: int
    ) -> None:
        """Add the rows of those who are members now, and before them closing rows of those who were and have gone.

        Args:
            before: Rows of those who were members, as they would be written now.
            after: Rows of those who are.
            decision: Number of the decision, or of what ended the membership.
            record_time: Its time, ms.
        """
        staying = {row.member_id for row in after}
        ended = {"decision": decision, "record_time": record_time, "event_date": day_of(record_time), "ended": True}
        self.members.extend(
            msgspec.structs.replace(row, **ended, partition_count=0, partitions=())
            for row in before
            if row.member_id not in staying
        )
        self.members.extend(after)


_ENCODER = msgspec.msgpack.Encoder()


def encode_rows(rows: Rows) -> bytes:
    """Pack the rows of one key into the operator's output payload."""
    return _ENCODER.encode(rows)


def known(number: int) -> int | None:
    """A number as a column: NULL for -1, which in records, observations and the state means unknown."""
    if number < 0:
        return None
    return number


# Neither topics nor brokers can have it in their names.
_BETWEEN: Final = "\0@\0"


def unit_of(topic: str, broker: str | None) -> str:
    """The name of a unit, by which the core keeps partitions: a Kafka topic, or the queues of a topic on one broker.

    A Kafka topic is named as it is. RocketMQ numbers the queues of each broker apart, so the name stands for both: a
    text that no topic can have as its name. Rows have them in two columns, `topic` and `broker`.
    """
    if broker is None:
        return topic
    return f"{topic}{_BETWEEN}{broker}"


def split(unit: str) -> tuple[str, str | None]:
    """Topic and broker of a unit; no broker where it is a Kafka topic."""
    topic, between, broker = unit.partition(_BETWEEN)
    return topic, broker if between else None


def for_people(text: str) -> str:
    """A text with names of units in it, as people read them: topic@broker."""
    return text.replace(_BETWEEN, "@")
