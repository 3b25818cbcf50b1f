"""The tables: every column with its type and its meaning, in one place.

From here come the Delta tables (`create`), the Arrow schemas of the writer, the DDL for Spark SQL, and the names
that the rows of the core have. All columns may be NULL in Delta's eyes, because a constraint would fail a batch
for ever; what NULL means stands in the comment.

This file is long because it holds one large schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

__all__ = ["ALERT_TABLES", "ALL_TABLES", "PROPERTIES", "TABLES", "Column", "Table", "Type", "ddl", "table_named"]


@dataclass(frozen=True, slots=True)
class Type:
    """A column type in Spark SQL's words and in Arrow's."""

    sql: str
    arrow: pa.DataType


STRING: Final = Type("STRING", pa.string())
INT: Final = Type("INT", pa.int32())
LONG: Final = Type("BIGINT", pa.int64())
DOUBLE: Final = Type("DOUBLE", pa.float64())
BOOLEAN: Final = Type("BOOLEAN", pa.bool_())
BINARY: Final = Type("BINARY", pa.binary())
TIMESTAMP: Final = Type("TIMESTAMP", pa.timestamp("us", "UTC"))
DATE: Final = Type("DATE", pa.date32())
STRINGS: Final = Type("ARRAY<STRING>", pa.list_(pa.string()))
DRIFTED: Final = Type(
    "ARRAY<STRUCT<topic: STRING, partition: INT, kind: STRING, expected: STRING, actual: ARRAY<STRING>>>",
    pa.list_(
        pa.struct(
            [
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("kind", pa.string()),
                ("expected", pa.string()),
                ("actual", pa.list_(pa.string())),
            ]
        )
    ),
)
FINDINGS: Final = Type(
    "ARRAY<STRUCT<finding: STRING, since: TIMESTAMP, detail: STRING>>",
    pa.list_(pa.struct([("finding", pa.string()), ("since", pa.timestamp("us", "UTC")), ("detail", pa.string())])),
)
REPLACED: Final = Type(
    "ARRAY<STRUCT<group_instance_id: STRING, old_member_id: STRING, new_member_id: STRING>>",
    pa.list_(
        pa.struct([("group_instance_id", pa.string()), ("old_member_id", pa.string()), ("new_member_id", pa.string())])
    ),
)
ASSIGNED: Final = Type(
    "ARRAY<STRUCT<topic: STRING, partitions: ARRAY<INT>>>",
    pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])),
)
LABELS: Final = Type(
    "ARRAY<STRUCT<name: STRING, value: STRING>>",
    pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())])),
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, type, and what it means, with unit and the meaning of NULL."""

    name: str
    type: Type
    comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        name: Name, and folder in the lake.
        comment: One row per what.
        columns: Columns in order.
        key: Columns that name what a row speaks of.
        newest_by: Columns that order the rows of one key, the last is the newest.
        closes: A row with `closed` ends its key.
        partition_by: Partition columns.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    newest_by: tuple[str, ...]
    closes: bool = False
    partition_by: tuple[str, ...] = ("event_date",)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The table's Arrow schema; comments are field metadata, as delta-rs writes them into the log."""
        return pa.schema([pa.field(c.name, c.type.arrow, metadata={"comment": c.comment}) for c in self.columns])


# An always-on job commits up to 8,640 times a day and table. The defaults (30 days of log, a checkpoint every 10
# commits) would keep a quarter of a million log files; a week lets a reader look back, and a checkpoint every 50
# commits costs a reader 50 small files at the most.
PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.checkpointInterval": "50",
}

_CLUSTER = Column("cluster", STRING, "Configured name of the cluster")
_GROUP = Column("group_id", STRING, "Group id")
_LOG_PARTITION = Column("log_partition", INT, "Partition of __consumer_offsets that holds the group")
_RECORD_OFFSET = Column("record_offset", LONG, "Log offset of the record that closed the decision")
_RECORD_TIME = Column("record_time", TIMESTAMP, "Timestamp of that record, UTC")
_RECORD_DATE = Column("event_date", DATE, "Day of record_time, UTC; partitions the table")
_ROUND = Column("round", LONG, "Number of the round: offset of its opening record; grows, with jumps")
_ROUND_TIME = Column("round_time", TIMESTAMP, "Time of the round by the broker's clock, UTC")
_ROUND_DATE = Column("event_date", DATE, "Day of round_time, UTC; partitions the table")
_INCARNATION = Column(
    "incarnation", LONG, "Log offset of the first decision of this run of generations; a new one when they restart"
)

REBALANCE_CHURN: Final = Table(
    "rebalance_churn",
    "One row per decision of a group; a second revision when its cost is known",
    (
        _CLUSTER,
        _GROUP,
        _LOG_PARTITION,
        _RECORD_OFFSET,
        _RECORD_TIME,
        _RECORD_DATE,
        Column("revision", INT, "1: as the record came; 2: with its cost"),
        Column("kind", STRING, "rebalance, became_empty, static_replacement (no rebalance), migration, created"),
        _INCARNATION,
        Column("generation", INT, "Generation; where the broker assigns (KIP-848), the epoch of the target assignment"),
        Column("previous_generation", INT, "Generation before, of the same incarnation; NULL when not known"),
        Column(
            "generations_skipped",
            INT,
            "Generations that left no record (the leader never synced), or epochs without a target; NULL when not known",
        ),
        Column(
            "follows",
            LONG,
            "record_offset of the first half of a cooperative rebalance; NULL when it is no second half",
        ),
        Column("protocol_type", STRING, "Protocol type: consumer, connect, ..."),
        Column(
            "strategy",
            STRING,
            "Selected protocol, or the server assignor that members ask for; NULL when the group is empty, or none is asked for",
        ),
        Column("leader", STRING, "Member id of the leader; NULL when the group is empty, or the broker assigns"),
        Column("members", INT, "Members"),
        Column("partitions", INT, "Assigned partitions; 0 where the assignment cannot be read"),
        Column("joined", STRINGS, "Member ids that were not in the generation before; NULL when that is not known"),
        Column("left", STRINGS, "Member ids that were in the generation before and are not any more"),
        Column("replaced", REPLACED, "Static members that came back under another member id"),
        Column("moves", INT, "Partitions that went from one owner to another; NULL when an assignment is not known"),
        Column(
            "moves_least",
            INT,
            "Least moves after which the group could be balanced; NULL where not computed, and in the first half of a cooperative rebalance",
        ),
        Column(
            "in_transfer",
            INT,
            "Partitions given up and not yet given on (cooperative); they count as moves in the row that follows",
        ),
        Column(
            "join_completed_time", TIMESTAMP, "Time when all had joined (currentStateTimestamp); NULL when not recorded"
        ),
        Column(
            "unowned_partition_seconds_min",
            DOUBLE,
            "Lower bound of the time without an owner, summed over partitions; NULL when it cannot be bounded",
        ),
        Column(
            "unowned_partition_seconds_max",
            DOUBLE,
            "Upper bound of the same, from the last commit before to the first commit after; NULL while or where it is open",
        ),
    ),
    key=("cluster", "group_id", "log_partition", "record_offset"),
    newest_by=("revision",),
)

DRIFT: Final = Table(
    "drift",
    "One row per verdict on a decision",
    (
        _CLUSTER,
        _GROUP,
        _LOG_PARTITION,
        _RECORD_OFFSET,
        _RECORD_TIME,
        _RECORD_DATE,
        _INCARNATION,
        Column("generation", INT, "Generation"),
        Column("round", LONG, "Number of the round that made the verdict possible"),
        Column("round_time", TIMESTAMP, "Time of that round, UTC"),
        Column("strategy", STRING, "Strategy that the group runs; NULL when it is empty"),
        Column("expected_strategy", STRING, "Strategy that the configuration expects; NULL when it names none"),
        Column(
            "strategy_mismatch", BOOLEAN, "The group runs another strategy than expected; NULL when either is not known"
        ),
        Column("verdict", STRING, "identical, drifted, valid_unverified, not_applicable"),
        Column("reason", STRING, "Why, where it is not plain from the verdict; NULL for identical"),
        Column(
            "matched_library",
            STRING,
            "Client library, or broker, and release (first of its era) that gives this assignment; NULL when none did",
        ),
        Column("candidates", INT, "Candidates (library, release) that were computed"),
        Column("drifted_count", INT, "Length of drifted_partitions"),
        Column(
            "drifted_partitions",
            DRIFTED,
            "Partitions whose owner is not the expected one: misplaced, unassigned, doubly_assigned, not_subscribed",
        ),
    ),
    key=("cluster", "group_id"),
    newest_by=("round_time", "round", "record_offset"),
)

LAG: Final = Table(
    "lag",
    "One row per partition of a group at a round in which its commit, end, owner or status changed, and at a heartbeat",
    (
        _CLUSTER,
        _GROUP,
        Column("topic", STRING, "Topic"),
        Column("partition", INT, "Partition"),
        _ROUND,
        _ROUND_TIME,
        _ROUND_DATE,
        Column("closed", BOOLEAN, "Last row of this partition: its offset is gone, or the group is"),
        Column(
            "committed_offset", LONG, "Last committed offset below the round's log position; NULL when there is none"
        ),
        Column("end_offset", LONG, "High watermark; NULL when it was not to be had"),
        Column("stable_offset", LONG, "Last stable offset; NULL when it was not to be had"),
        Column("start_offset", LONG, "Log start offset; NULL when it was not to be had"),
        Column("lag", LONG, "end_offset minus committed_offset, at least 0, in records' offsets; NULL with a reason"),
        Column("lag_stable", LONG, "stable_offset minus committed_offset, at least 0; NULL with a reason"),
        Column("ahead_by", LONG, "Offsets by which the commit lies beyond end_offset; NULL when lag is"),
        Column("lag_status", STRING, "ok, no_commit, unknown, ahead, rewound, falling_behind, stalled, stopped"),
        Column(
            "reason",
            STRING,
            "Why lag is NULL: no_commit, end_offset_unknown, log_held_back, topic_unseen, topic_does_not_exist, beyond_partition_count, closed",
        ),
        Column("commits", LONG, "Offset commits since the row before; sums up to all commits read"),
        Column("last_commit_time", TIMESTAMP, "Timestamp of the last commit's record, UTC; NULL when there is none"),
        Column(
            "rewound_by", LONG, "Largest step backwards between commits since the row before, in offsets; 0 for none"
        ),
        Column("offset_deleted", BOOLEAN, "The committed offset was deleted or expired since the row before"),
        Column(
            "subscribed",
            BOOLEAN,
            "The group subscribes to the topic, or has no membership that tells; others stay out of sums and alerts",
        ),
        Column("member_id", STRING, "Owner by the newest decision; NULL when nobody owns it"),
        Column("client_id", STRING, "The owner's client id"),
        Column("client_host", STRING, "The owner's host, as the broker recorded it"),
    ),
    key=("cluster", "group_id", "topic", "partition"),
    newest_by=("round_time", "round"),
    closes=True,
)

GROUP_HEALTH: Final = Table(
    "group_health",
    "One row per group and round with a change, and at a heartbeat",
    (
        _CLUSTER,
        Column("cluster_id", STRING, "Kafka's own cluster id; NULL when the broker gives none"),
        _GROUP,
        _LOG_PARTITION,
        _ROUND,
        _ROUND_TIME,
        _ROUND_DATE,
        Column("closed", BOOLEAN, "Last row of this group: it was deleted, or is not watched any more"),
        Column(
            "state",
            STRING,
            "Coordinator's state at the round (Stable, Empty, PreparingRebalance, ...); Deleted or Filtered in the closing row",
        ),
        Column("group_type", STRING, "classic, consumer, share, streams; NULL when the broker does not tell"),
        Column("protocol_type", STRING, "Protocol type; NULL when not known"),
        Column("strategy", STRING, "Strategy that the group runs; NULL without members"),
        Column("expected_strategy", STRING, "Strategy that the configuration expects; NULL when it names none"),
        Column(
            "strategy_mismatch", BOOLEAN, "The group runs another strategy than expected; NULL when either is not known"
        ),
        _INCARNATION,
        Column("generation", INT, "Newest generation, or epoch of the newest target; NULL when none is known"),
        Column("last_decision_time", TIMESTAMP, "record_time of the newest decision, UTC"),
        Column("members", INT, "Members"),
        Column("verdict", STRING, "Verdict of the newest decision, or pending"),
        Column("verdict_reason", STRING, "Its reason; NULL for identical"),
        Column("drifted_count", INT, "Drifted partitions of the newest decision"),
        Column(
            "findings",
            FINDINGS,
            "What holds now, and since when: stale_metadata, unassigned, in_transfer, not_converged, topic_unseen, log_held_back",
        ),
        Column("topics", INT, "Topics that count in the sums"),
        Column("partitions", INT, "Partitions that count in the sums"),
        Column("assigned_partitions", INT, "Assigned partitions"),
        Column("lag_total", LONG, "Sum of lag over subscribed partitions with a known lag; NULL when there is none"),
        Column("lag_stable_total", LONG, "The same of lag_stable"),
        Column("lag_max", LONG, "Largest lag of one partition; NULL when none is known"),
        Column("lag_unknown", INT, "Partitions whose lag is NULL"),
        Column("lag_status", STRING, "Worst lag_status of a partition"),
        Column("commits", LONG, "Offset commits since the row before"),
        Column("imbalance", DOUBLE, "max / mean - 1 of partitions per member; NULL when nothing is assigned"),
        Column("imbalance_least", DOUBLE, "The least imbalance that any assignment of these partitions could have"),
    ),
    key=("cluster", "group_id"),
    newest_by=("round_time", "round"),
    closes=True,
)

MEMBERS: Final = Table(
    "members",
    "One row per member of a decision, and a closing row when it has left",
    (
        _CLUSTER,
        _GROUP,
        Column("member_id", STRING, "Member id"),
        _LOG_PARTITION,
        _RECORD_OFFSET,
        _RECORD_TIME,
        _RECORD_DATE,
        Column("closed", BOOLEAN, "The member has left; the row has the record that shows it"),
        _INCARNATION,
        Column("generation", INT, "Generation that the member is or was last in"),
        Column("group_instance_id", STRING, "group.instance.id; NULL for a dynamic member"),
        Column("client_id", STRING, "Client id"),
        Column("client_host", STRING, "Host as the broker recorded it"),
        Column("rack", STRING, "client.rack; NULL when none"),
        Column("leader", BOOLEAN, "It led this generation"),
        Column("subscription", STRINGS, "Subscribed topics; NULL when they cannot be read"),
        Column("partition_count", INT, "Assigned partitions; NULL when they cannot be read"),
        Column("partitions", ASSIGNED, "Assigned partitions by topic; NULL when they cannot be read"),
        Column("undecodable", STRING, "Why subscription or assignment cannot be read; NULL when they can"),
    ),
    key=("cluster", "group_id", "member_id"),
    newest_by=("record_offset",),
    closes=True,
)

QUARANTINE: Final = Table(
    "quarantine",
    "One row per record that could not be decoded; of unknown types and newer versions one sample per type, version and day, with counts",
    (
        _CLUSTER,
        Column("topic", STRING, "Topic of the record: __consumer_offsets, or one of the probe's"),
        Column("partition", INT, "Its partition"),
        Column("record_offset", LONG, "Its offset"),
        Column("record_time", TIMESTAMP, "Its timestamp, UTC; NULL when that is no time"),
        Column("event_date", DATE, "Day of record_time, UTC"),
        Column("kind", STRING, "undecodable: of a known type; unknown: of an unknown type or a newer version"),
        Column("key_type", INT, "Record type at the head of the key; NULL when the key is null or too short"),
        Column("value_version", INT, "Version at the head of the value; NULL when the value is null or too short"),
        Column("reason", STRING, "What is wrong with it"),
        Column("records", LONG, "Records that this row stands for; for unknown ones the count of the day so far"),
        Column("last_record_offset", LONG, "Offset of the last of them"),
        Column("key", BINARY, "Key, at most 64 KiB of it"),
        Column("value", BINARY, "Value, at most 64 KiB of it"),
        Column("key_size", INT, "Bytes of the whole key; NULL when it is null"),
        Column("value_size", INT, "Bytes of the whole value; NULL when it is null"),
        Column("sha256", STRING, "Of key and value together, when either was cut; NULL otherwise"),
    ),
    key=("cluster", "topic", "partition", "record_offset"),
    newest_by=("last_record_offset",),
    # Timestamps in broken records are whatever somebody wrote: a folder per day of them could be any number.
    partition_by=(),
)

GAPS: Final = Table(
    "gaps",
    "One row per range of a topic that was gone before it was read, and per time without rounds",
    (
        _CLUSTER,
        Column("kind", STRING, "log: records were gone; rounds: no round closed"),
        Column("topic", STRING, "Topic of the records; NULL for rounds"),
        Column("partition", INT, "Its partition; NULL for rounds"),
        Column("from_offset", LONG, "First offset that was wanted; NULL for rounds"),
        Column("to_offset", LONG, "First offset that was there; NULL for rounds"),
        Column("from_time", TIMESTAMP, "Time of the last round before, UTC; NULL for records"),
        Column("to_time", TIMESTAMP, "Time of the next round, UTC; NULL for records"),
        Column("reason", STRING, "Why, as far as it is known"),
    ),
    key=("cluster", "kind", "topic", "partition", "from_offset", "from_time"),
    newest_by=("to_offset", "to_time"),
    partition_by=(),
)

ROUNDS: Final = Table(
    "rounds",
    "One row per closed round: the newest one tells how old everything else is",
    (
        _CLUSTER,
        Column("cluster_id", STRING, "Kafka's own cluster id; NULL when the broker gives none"),
        _ROUND,
        _ROUND_TIME,
        _ROUND_DATE,
        Column("closed_time", TIMESTAMP, "Time when all its events were acknowledged, by the broker's clock, UTC"),
        Column("interval_ms", INT, "Interval that the probe keeps, ms"),
        Column("probe", STRING, "Id of the probe process"),
        Column("groups", INT, "Groups in the round"),
        Column("events", INT, "Events of the round"),
        Column("log_partitions", INT, "Partitions of __consumer_offsets"),
        Column("held_partitions", INT, "Those whose last stable offset was below their high watermark"),
        Column("log_records", LONG, "Offsets of __consumer_offsets since the round before"),
    ),
    key=("cluster",),
    newest_by=("round_time", "round"),
)

TABLES: Final = (REBALANCE_CHURN, DRIFT, LAG, GROUP_HEALTH, MEMBERS, QUARANTINE, GAPS, ROUNDS)
"""All tables that the job writes, in the order in which a batch writes them.

`rounds` is last: once a round is there, everything of it is.
"""

ALERTS: Final = Table(
    "alerts",
    "One row per transition of an alert; written by the alerter, and its outbox",
    (
        Column(
            "transition_id", STRING, "Id of this transition: the same decision has the same id, also when sent twice"
        ),
        Column("alert_id", STRING, "Id of this occurrence: shared by its pending, firing, and resolved or gone"),
        _CLUSTER,
        Column("rule", STRING, "Name of the rule"),
        Column("severity", STRING, "info, warning, critical"),
        Column("group_id", STRING, "Group id; NULL for a rule about the cluster"),
        Column("topic", STRING, "Topic; NULL for a rule about groups or the cluster"),
        Column("partition", INT, "Partition; NULL for a rule about groups or the cluster"),
        Column("entity", STRING, "Key of the row that the rule read, as a JSON object without the cluster"),
        Column("labels", LABELS, "The rule's labels, filled in, by name"),
        Column(
            "state",
            STRING,
            "pending: true, but not yet for as long as the rule asks; firing; resolved: no longer true; gone: what it spoke of, or its rule, is gone",
        ),
        Column("from_state", STRING, "State before: pending or firing; NULL when the occurrence begins"),
        Column("closed", BOOLEAN, "Last row of this occurrence: resolved or gone"),
        Column(
            "since",
            TIMESTAMP,
            "Time of the first round of this occurrence, UTC; of silence, time of the last round before it",
        ),
        Column("round", LONG, "Round that decided; of silence the newest round; NULL when there was none yet"),
        Column("round_time", TIMESTAMP, "Time of that round, UTC; NULL when there was none yet"),
        Column("event_date", DATE, "Day of round_time, or of decided_time without a round, UTC; partitions the table"),
        Column("late", BOOLEAN, "Found late: round_time was then older than the alerter's late_after"),
        Column("value", DOUBLE, "The rule's value at the round; NULL when it has none"),
        Column("message", STRING, "The rule's message, filled in"),
        Column("decided_time", TIMESTAMP, "When the alerter decided, by its own clock, UTC"),
        Column("decision", LONG, "Number of the alerter's commit, grows by one"),
    ),
    key=("cluster", "rule", "entity"),
    newest_by=("decision", "round_time", "round"),
    closes=True,
)

ALERT_DELIVERIES: Final = Table(
    "alert_deliveries",
    "One row per attempt to deliver a transition to a target, or per reason not to",
    (
        Column("transition_id", STRING, "Id of the transition; NULL in the row that says that a target was added"),
        Column("alert_id", STRING, "Id of its occurrence"),
        _CLUSTER,
        Column("target", STRING, "Name of the target in the settings; its address is a secret and stands nowhere"),
        Column("rule", STRING, "Name of the rule"),
        Column("state", STRING, "State that was told: firing, resolved, gone"),
        Column("attempt", INT, "Number of the attempt, from 1; NULL when none was made"),
        Column(
            "outcome",
            STRING,
            "delivered: the target took it; failed: tried again later; given_up: not tried again; skipped: not to be sent; added: the target is new, of what was before it gets only what still fires",
        ),
        Column("reason", STRING, "Why, where it was not delivered; NULL otherwise"),
        Column("duration_ms", LONG, "Time that the attempt took, ms; NULL when none was made"),
        Column("attempt_time", TIMESTAMP, "When, by the alerter's clock, UTC"),
        Column("event_date", DATE, "Day of attempt_time, UTC; partitions the table"),
    ),
    key=("transition_id", "target"),
    newest_by=("attempt_time", "attempt"),
)

ALERT_TABLES: Final = (ALERTS, ALERT_DELIVERIES)
"""The tables that the alerter writes; those of the job are `TABLES`."""

ALL_TABLES: Final = (*TABLES, *ALERT_TABLES)
"""Every table of a lake."""

_BY_NAME = {table.name: table for table in ALL_TABLES}


def table_named(name: str) -> Table:
    """The table of that name.

    Raises:
        KeyError: There is none.
    """
    return _BY_NAME[name]


def ddl(table: Table, location: str) -> str:
    """Spark SQL that creates the table at a location, the same as `create` does without Spark."""
    quoted = location.replace("`", "``")
    columns = ",\n  ".join(f"`{c.name}` {c.type.sql} COMMENT {_literal(c.comment)}" for c in table.columns)
    partitioned = f"\nPARTITIONED BY ({', '.join(table.partition_by)})" if table.partition_by else ""
    properties = ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in PROPERTIES.items())
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{quoted}` (\n  {columns}\n)\nUSING delta{partitioned}\n"
        f"COMMENT {_literal(table.comment)}\nTBLPROPERTIES ({properties})"
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
