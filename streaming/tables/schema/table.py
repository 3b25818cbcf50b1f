"""What a table is: columns with their types and meaning, a key, an order; its Delta properties.

Columns that several tables have are here, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

_SQL: Final = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.binary(): "BINARY",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    pa.date32(): "DATE",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A column type as Arrow has it."""

    arrow: pa.DataType

    @property
    def sql(self) -> str:
        """The same in Spark SQL's words."""
        return _sql(self.arrow)


def _sql(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"ARRAY<{_sql(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {_sql(field.type)}' for field in kind)}>"
    return _SQL[kind]


def list_of(kind: Type) -> Type:
    """Lists of one type."""
    return Type(pa.list_(kind.arrow))


def structs(**fields: Type) -> Type:
    """Lists of structs with these fields."""
    return Type(pa.list_(pa.struct([(name, kind.arrow) for name, kind in fields.items()])))


STRING: Final = Type(pa.string())
INT: Final = Type(pa.int32())
LONG: Final = Type(pa.int64())
DOUBLE: Final = Type(pa.float64())
BOOLEAN: Final = Type(pa.bool_())
BINARY: Final = Type(pa.binary())
TIMESTAMP: Final = Type(pa.timestamp("us", "UTC"))
DATE: Final = Type(pa.date32())
STRINGS: Final = list_of(STRING)
DRIFTED: Final = structs(topic=STRING, partition=INT, kind=STRING, expected=STRING, actual=STRINGS, broker=STRING)
FINDINGS: Final = structs(finding=STRING, since=TIMESTAMP, detail=STRING)
HOT_PARTITIONS: Final = structs(topic=STRING, partition=INT, per_second=DOUBLE)
REPLACED: Final = structs(group_instance_id=STRING, old_member_id=STRING, new_member_id=STRING)
CAUSES: Final = structs(
    cause=STRING, evidence=STRING, count=INT, members=STRINGS, topic=STRING, before=STRING, after=STRING
)
BROKERS: Final = structs(broker=INT, host=STRING, rack=STRING, since=TIMESTAMP)
ASSIGNED: Final = structs(topic=STRING, partitions=list_of(INT), broker=STRING)
TASKS: Final = structs(kind=STRING, subtopology=STRING, tasks=list_of(INT))
LABELS: Final = structs(name=STRING, value=STRING)


# Delta's properties, by how often a table is written. A checkpoint holds every file of the table and every tombstone, a
# file that compaction or retention has removed. A batch every 10 s is 8,640 commits a day: Delta's defaults (30 days of
# log, 7 of tombstones, a checkpoint every 10 commits) would keep a quarter of a million commits and write 60,480
# tombstones 864 times a day. The time of a tombstone is also the time for which a reader of an old version is safe:
# half a day is far beyond any query. With a checkpoint every 200 commits a busy table has 43 a day.
_EVERY_BATCH: Final = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 12 hours",
    "delta.checkpointInterval": "200",
}

# The alerter reads the new rows of `gaps`, `quarantine` and `alert_deliveries` from the log: a week bridges an outage
# over holidays.
_NOW_AND_THEN: Final = {
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "200",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, type, and what it means, with unit and the meaning of NULL."""

    name: str
    type: Type
    comment: str


HEARTBEAT: Final = "heartbeat"
DAILY: Final = "day"


@dataclass(frozen=True)  # without slots, which leave a cached property no place
class Table:
    """One table.

    Attributes:
        name: Name, and folder in the lake.
        comment: One row per what.
        columns: Columns in order.
        key: Columns that name what a row speaks of.
        newest_by: Columns that order the rows of one key, the last is the newest; empty where a key has one row.
        keep_days: Rows of days further back are deleted, unless the settings say otherwise; None keeps them for ever.
        time: The column by which rows grow old.
        closes: A row with `closed` ends its key.
        partition_by: Partition columns.
        every_batch: Nearly every batch of a busy cluster writes it.
        unique_by: Columns that identify a row, where they are not those of `key` and `newest_by`.
        of_rounds: Its rows belong to rounds, of which a batch takes whole ones.
        repeats: How often the newest row of a key that lives is written once more, with the day of the round: at each
            `HEARTBEAT` (`job.heartbeat_ms`), or `DAILY`. None where it is written once.
        with_group: What a row tells ends with its group (`group_health_current`), and has no closing row.
        with_cluster: What a row tells is the present only while its cluster is watched (`clusters_current`).
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    newest_by: tuple[str, ...]
    keep_days: int | None
    time: str
    closes: bool = False
    partition_by: tuple[str, ...] = ("event_date",)
    every_batch: bool = False
    unique_by: tuple[str, ...] = ()
    of_rounds: bool = False
    repeats: str | None = None
    with_group: bool = False
    with_cluster: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns that identify a row: a job that reads the same records again writes them again."""
        return self.unique_by or (*self.key, *self.newest_by)

    @property
    def properties(self) -> dict[str, str]:
        """Delta's table properties."""
        return dict(_EVERY_BATCH if self.every_batch else _NOW_AND_THEN)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The table's Arrow schema; comments are field metadata, as delta-rs writes them into the log."""
        return pa.schema([pa.field(c.name, c.type.arrow, metadata={"comment": c.comment}) for c in self.columns])


def observed(name: str, comment: str, columns: tuple[Column, ...], key: tuple[str, ...], keep_days: int = 35) -> Table:
    """A table of what rounds observe: a row of a key when it changes, at each heartbeat, and when it has ended."""
    return Table(
        name,
        comment,
        columns,
        key,
        newest_by=("round",),
        keep_days=keep_days,
        time="round_time",
        closes=True,
        every_batch=True,
        of_rounds=True,
        repeats=HEARTBEAT,
        with_cluster=True,
    )


CLUSTER: Final = Column("cluster", STRING, "Configured name of the cluster")
BROKER: Final = Column(
    "broker", STRING, "Broker that holds the partition, where each numbers its own (RocketMQ); NULL for Kafka"
)
GROUP: Final = Column("group_id", STRING, "Group id")
SOURCE: Final = Column(
    "source",
    STRING,
    "Where the group was read from: log (__consumer_offsets), admin (Kafka's requests in rounds, admin-mode.md), rocketmq (rocketmq.md)",
)
LOG_PARTITION: Final = Column(
    "log_partition",
    INT,
    "Partition of __consumer_offsets that holds the group; NULL when not known, and for sources other than log",
)
DECISION: Final = Column(
    "decision",
    LONG,
    "Number of the decision, growing within a group: the offset in log_partition of the record that closed it, or, where source is not log, the round that showed it",
)
RECORD_TIME: Final = Column(
    "record_time",
    TIMESTAMP,
    "Timestamp of the record that closed the decision, UTC; for sources other than log, the time of the round that showed it",
)
RECORD_DATE: Final = Column("event_date", DATE, "Day of record_time, UTC; partitions the table")
ROUND: Final = Column("round", LONG, "Number of the round: the offset of its opening record; grows, with jumps")
ROUND_TIME: Final = Column("round_time", TIMESTAMP, "Time of the round by the broker's clock, UTC")
ROUND_DATE: Final = Column("event_date", DATE, "Day of round_time, UTC; partitions the table")
INCARNATION: Final = Column(
    "incarnation", LONG, "Number of the first decision of this run of generations; a new one when they restart"
)

REPEAT: Final = Column(
    "repeat",
    LONG,
    "Round that wrote the row once more, with its day in event_date, once a day for what goes on. NULL in the row of the change itself",
)

OF_DECISION: Final = (CLUSTER, GROUP, DECISION, SOURCE, LOG_PARTITION, RECORD_TIME, RECORD_DATE)
"""Which decision a row is of."""

VERDICT_ROUND: Final = (
    Column("round", LONG, "Number of the round that made the verdict possible"),
    Column("round_time", TIMESTAMP, "Time of that round, UTC"),
)
