"""What rounds leave: lag, the health of groups, what holds back the log, and the rounds themselves."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.shared import (
    BROKER,
    CLUSTER,
    GROUP,
    INCARNATION,
    LOG_PARTITION,
    ROUND,
    ROUND_DATE,
    ROUND_TIME,
    SOURCE,
)
from streaming.tables.schema.table import Column, Table
from streaming.tables.schema.types import BOOLEAN, DOUBLE, FINDINGS, INT, LONG, STRING, TIMESTAMP

__all__ = ["GROUP_HEALTH", "LAG", "OPEN_TRANSACTIONS", "ROUNDS"]

LAG: Final = Table(
    "lag",
    "One row per partition of a group at a round in which its commit, end, owner or status changed, and at a heartbeat",
    (
        CLUSTER,
        GROUP,
        Column("topic", STRING, "Topic"),
        BROKER,
        Column("partition", INT, "Partition"),
        SOURCE,
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("ended", BOOLEAN, "Last row of this partition: its offset is gone, or the group is"),
        Column(
            "committed_offset", LONG, "Last committed offset below the round's log position; NULL when there is none"
        ),
        Column("high_watermark", LONG, "High watermark; NULL when it was not to be had"),
        Column("last_stable_offset", LONG, "Last stable offset; NULL when it was not to be had"),
        Column("log_start_offset", LONG, "Log start offset; NULL when it was not to be had"),
        Column(
            "lag",
            LONG,
            "What can still be read, in offsets: high_watermark minus committed_offset, or minus log_start_offset where that is beyond it; at least 0, NULL with a reason",
        ),
        Column("lag_read_committed", LONG, "The same up to last_stable_offset; NULL with a reason"),
        Column(
            "lost_records",
            LONG,
            "Offsets that were deleted before the group committed past them: from committed_offset up to the log start as the round before saw it; NULL when lag is, and when that cannot be told yet",
        ),
        Column("ahead_by", LONG, "Offsets by which the commit lies beyond high_watermark; NULL when lag is"),
        Column("lag_status", STRING, "ok, no_commit, unknown, ahead, rewound, falling_behind, stalled, stopped"),
        Column(
            "reason",
            STRING,
            "Why lag is NULL: no_commit, high_watermark_unknown, offsets_blocked, topic_not_visible, topic_does_not_exist, beyond_partition_count, topic_recreated (the commit is of a topic before of the same name), ended",
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
    key=("cluster", "group_id", "topic", "broker", "partition"),
    newest_by=("round",),
    closes=True,
)

GROUP_HEALTH: Final = Table(
    "group_health",
    "One row per group and round with a change, and at a heartbeat",
    (
        CLUSTER,
        Column("cluster_id", STRING, "Kafka's own cluster id; NULL when the broker gives none"),
        GROUP,
        SOURCE,
        LOG_PARTITION,
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("ended", BOOLEAN, "Last row of this group: it was deleted, or is not watched any more"),
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
        INCARNATION,
        Column("generation", INT, "Newest generation, or epoch of the newest target; NULL when none is known"),
        Column("last_decision_time", TIMESTAMP, "record_time of the newest decision, UTC"),
        Column("members", INT, "Members"),
        Column("verdict", STRING, "Verdict of the newest decision, or pending"),
        Column("verdict_reason", STRING, "Its reason; NULL for identical"),
        Column("drifted_count", INT, "Drifted partitions of the newest decision"),
        Column(
            "findings",
            FINDINGS,
            "What holds now, and since when: stale_metadata, unassigned, partitions_pending_handover, reconciling, topic_not_visible, offsets_blocked, topic_recreated, rewound, offset_deleted",
        ),
        Column("topics", INT, "Topics that count in the sums"),
        Column("partitions", INT, "Partitions that count in the sums"),
        Column("assigned_partitions", INT, "Assigned partitions"),
        Column("lag_total", LONG, "Sum of lag over subscribed partitions with a known lag; NULL when there is none"),
        Column("lag_read_committed_total", LONG, "The same of lag_read_committed"),
        Column("lost_records", LONG, "Sum of lost_records over subscribed partitions"),
        Column("lag_max", LONG, "Largest lag of one partition; NULL when none is known"),
        Column("lag_unknown", INT, "Partitions whose lag is NULL"),
        Column("lag_status", STRING, "Worst lag_status of a partition"),
        Column("commits", LONG, "Offset commits since the row before"),
        Column("imbalance", DOUBLE, "max / mean - 1 of partitions per member; NULL when nothing is assigned"),
        Column("imbalance_optimal", DOUBLE, "The least imbalance that any assignment of these partitions could have"),
    ),
    key=("cluster", "group_id"),
    newest_by=("round",),
    closes=True,
)

ROUNDS: Final = Table(
    "rounds",
    "One row per closed round: the newest one tells how old everything else is",
    (
        CLUSTER,
        Column("cluster_id", STRING, "Kafka's own cluster id; NULL when the broker gives none"),
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("closed_time", TIMESTAMP, "Time when all its events were acknowledged, by the broker's clock, UTC"),
        Column("interval_ms", INT, "Interval that the probe keeps, ms"),
        Column("probe", STRING, "Id of the probe process"),
        Column("groups", INT, "Groups that the round told; idle ones come once in a heartbeat"),
        Column("events", INT, "Events of the round"),
        Column("log_partitions", INT, "Partitions of __consumer_offsets"),
        Column("held_partitions", INT, "Those whose last stable offset was below their high watermark"),
        Column("log_records", LONG, "Offsets of __consumer_offsets since the round before"),
        Column(
            "elapsed_ms",
            LONG,
            "Time since the job's first round, ms: steps between rounds summed, each 0 to 3 intervals. What durations are differences of",
        ),
        Column(
            "opened_offset",
            LONG,
            "Offset of the round's opening record in the rounds topic; round less this is what was added to offsets since that topic was created again",
        ),
    ),
    key=("cluster",),
    newest_by=("round",),
)

OPEN_TRANSACTIONS: Final = Table(
    "open_transactions",
    "One row per change of a partition of __consumer_offsets that an open transaction holds back for more than a few rounds: it began, it is known whose it is, it ended",
    (
        CLUSTER,
        Column("log_partition", INT, "Partition of __consumer_offsets"),
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("held", BOOLEAN, "It is held back; false in the row that ends it"),
        Column(
            "held_since",
            TIMESTAMP,
            "Time of the first round that saw the last stable offset where it stands or stood, UTC",
        ),
        Column("held_offset", LONG, "Last stable offset: where the transaction begins"),
        Column("waiting", LONG, "Offsets behind it at this round, which nobody can read yet; 0 when it has ended"),
        Column("groups", INT, "Groups in the partition, whose lag is unknown meanwhile; 0 when it has ended"),
        Column("producer_id", LONG, "Producer of the transaction; NULL when the broker does not tell"),
        Column(
            "transactional_id",
            STRING,
            "Its transactional id; NULL when no coordinator knows one for the producer, or we may not describe it",
        ),
    ),
    key=("cluster", "log_partition"),
    newest_by=("round",),
)
