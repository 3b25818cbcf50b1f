"""Columns that several tables have."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import Column
from streaming.tables.schema.types import DATE, INT, LONG, STRING, TIMESTAMP

__all__ = [
    "BROKER",
    "CLUSTER",
    "DECISION",
    "GROUP",
    "INCARNATION",
    "LOG_PARTITION",
    "OF_DECISION",
    "RECORD_DATE",
    "RECORD_TIME",
    "ROUND",
    "ROUND_DATE",
    "ROUND_TIME",
    "SOURCE",
    "VERDICT_ROUND",
]

CLUSTER: Final = Column("cluster", STRING, "Configured name of the cluster")
BROKER: Final = Column(
    "broker", STRING, "Broker that holds the partition, where each numbers its own (RocketMQ); NULL for Kafka"
)
GROUP: Final = Column("group_id", STRING, "Group id")
SOURCE: Final = Column(
    "source",
    STRING,
    "Where the group was read from: log, the records of __consumer_offsets (the only source so far; admin and rocketmq are reserved)",
)
LOG_PARTITION: Final = Column(
    "log_partition",
    INT,
    "Partition of __consumer_offsets that holds the group; NULL when not known, and for sources other than log",
)
DECISION: Final = Column(
    "decision",
    LONG,
    "Number of the decision, growing within a group. For source log: the offset in log_partition of the record that closed it; for other sources: the number of the round that showed it",
)
RECORD_TIME: Final = Column("record_time", TIMESTAMP, "Timestamp of the record that closed the decision, UTC")
RECORD_DATE: Final = Column("event_date", DATE, "Day of record_time, UTC; partitions the table")
ROUND: Final = Column("round", LONG, "Number of the round: the offset of its opening record; grows, with jumps")
ROUND_TIME: Final = Column("round_time", TIMESTAMP, "Time of the round by the broker's clock, UTC")
ROUND_DATE: Final = Column("event_date", DATE, "Day of round_time, UTC; partitions the table")
INCARNATION: Final = Column(
    "incarnation", LONG, "Log offset of the first decision of this run of generations; a new one when they restart"
)

OF_DECISION: Final = (CLUSTER, GROUP, DECISION, SOURCE, LOG_PARTITION, RECORD_TIME, RECORD_DATE)
"""Which decision a row is of."""

VERDICT_ROUND: Final = (
    Column("round", LONG, "Number of the round that made the verdict possible"),
    Column("round_time", TIMESTAMP, "Time of that round, UTC"),
)
