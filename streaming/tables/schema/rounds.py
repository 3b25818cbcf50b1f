"""What rounds leave: lag, the health of groups, what holds back the log, and the rounds themselves."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BOOLEAN,
    BROKER,
    CLUSTER,
    DOUBLE,
    FINDINGS,
    GROUP,
    INCARNATION,
    INT,
    LOG_PARTITION,
    LONG,
    ROUND,
    ROUND_DATE,
    ROUND_TIME,
    SOURCE,
    STRING,
    TIMESTAMP,
    Column,
    Table,
)

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
        Column("ended", BOOLEAN, "Last row of this partition: its committed offset is gone, or the group is"),
        Column(
            "committed_offset", LONG, "Last committed offset below the round's log position; NULL when there is none"
        ),
        Column("high_watermark", LONG, "High watermark; NULL when the probe could not read it"),
        Column("last_stable_offset", LONG, "Last stable offset; NULL when the probe could not read it"),
        Column("log_start_offset", LONG, "Log start offset; NULL when the probe could not read it"),
        Column(
            "lag",
            LONG,
            "Offsets that can still be read: high_watermark minus committed_offset, or minus log_start_offset where that is higher; at least 0, NULL with a reason",
        ),
        Column("lag_read_committed", LONG, "The same up to last_stable_offset; NULL with a reason"),
        Column(
            "lost_records",
            LONG,
            "Offsets deleted before the group committed past them: from committed_offset to the log start that the previous round saw. NULL when lag is, and until two rounds have seen the log start",
        ),
        Column("ahead_by", LONG, "By how many offsets the commit exceeds high_watermark; NULL when lag is"),
        Column("lag_status", STRING, "ok, no_commit, unknown, ahead, rewound, falling_behind, stalled, stopped"),
        Column(
            "reason",
            STRING,
            "Why lag is NULL: no_commit, high_watermark_unknown, offsets_blocked, topic_not_visible, topic_does_not_exist, beyond_partition_count, topic_recreated (the commit belongs to an earlier topic of the same name), ended",
        ),
        Column("commits", LONG, "Offset commits since the previous row; the sum over rows is all commits read"),
        Column("last_commit_time", TIMESTAMP, "Timestamp of the last commit's record, UTC; NULL when there is none"),
        Column(
            "rewound_by", LONG, "Largest step backwards between commits since the previous row, in offsets; 0 for none"
        ),
        Column("offset_deleted", BOOLEAN, "The committed offset was deleted or expired since the previous row"),
        Column(
            "subscribed",
            BOOLEAN,
            "The group subscribes to the topic, or its subscription is not known; other topics stay out of sums and alerts",
        ),
        Column("member_id", STRING, "Member id of the owner by the newest decision; NULL when there is none"),
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
        Column("ended", BOOLEAN, "Last row of this group: it was deleted, or is no longer watched"),
        Column(
            "state",
            STRING,
            "Coordinator's state at the round (Stable, Empty, PreparingRebalance, ...); Deleted or Filtered in the closing row",
        ),
        Column("group_type", STRING, "classic, consumer, share, streams; NULL when the broker does not say"),
        Column("protocol_type", STRING, "Protocol type; NULL when not known"),
        Column("strategy", STRING, "Strategy that the group runs; NULL without members"),
        Column("expected_strategy", STRING, "Strategy that the configuration expects; NULL when there is none"),
        Column(
            "strategy_mismatch", BOOLEAN, "The group runs another strategy than expected; NULL when either is not known"
        ),
        INCARNATION,
        Column("generation", INT, "Newest generation, or epoch of the newest target; NULL when none is known"),
        Column("last_decision_time", TIMESTAMP, "record_time of the newest decision, UTC"),
        Column("members", INT, "Number of members"),
        Column("verdict", STRING, "Verdict of the newest decision, or pending"),
        Column("verdict_reason", STRING, "Its reason; NULL for identical"),
        Column("drifted_count", INT, "Drifted partitions of the newest decision"),
        Column(
            "findings",
            FINDINGS,
            "What holds now, and since when: stale_metadata, unassigned, partitions_pending_handover, reconciling, topic_not_visible, offsets_blocked, topic_recreated, rewound, data_lost, offset_deleted",
        ),
        Column("topics", INT, "Topics that count in the sums"),
        Column("partitions", INT, "Partitions that count in the sums"),
        Column("assigned_partitions", INT, "Assigned partitions"),
        Column("lag_total", LONG, "Sum of lag over subscribed partitions with a known lag; NULL when there is none"),
        Column("lag_read_committed_total", LONG, "Sum of lag_read_committed likewise"),
        Column("lost_records", LONG, "Sum of lost_records over subscribed partitions"),
        Column("lag_max", LONG, "Largest lag of one partition; NULL when none is known"),
        Column("lag_unknown", INT, "Partitions whose lag is NULL"),
        Column("lag_status", STRING, "Worst lag_status of a partition"),
        Column("commits", LONG, "Offset commits since the previous row"),
        Column("imbalance", DOUBLE, "max / mean - 1 of partitions per member; NULL when nothing is assigned"),
        Column("imbalance_optimal", DOUBLE, "Lowest imbalance that any assignment of these partitions could have"),
    ),
    key=("cluster", "group_id"),
    newest_by=("round",),
    closes=True,
)

ROUNDS: Final = Table(
    "rounds",
    "One row per closed round; the newest one shows how old everything else is",
    (
        CLUSTER,
        Column("cluster_id", STRING, "Kafka's own cluster id; NULL when the broker gives none"),
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("closed_time", TIMESTAMP, "Time when all its events were acknowledged, by the broker's clock, UTC"),
        Column("interval_ms", INT, "The probe's interval, ms"),
        Column("probe", STRING, "Id of the probe process"),
        Column("groups", INT, "Groups in the round; idle ones are observed once per heartbeat"),
        Column("events", INT, "Events of the round"),
        Column("log_partitions", INT, "Partitions of __consumer_offsets"),
        Column("held_partitions", INT, "Those whose last stable offset was below their high watermark"),
        Column("log_records", LONG, "Offsets of __consumer_offsets since the previous round"),
        Column(
            "elapsed_ms",
            LONG,
            "Time since the job's first round, ms: the sum of the steps between rounds, each limited to 0 to 3 intervals. Durations are differences of it",
        ),
        Column(
            "opened_offset",
            LONG,
            "Offset of the round's opening record in the rounds topic; round is higher than this only after that topic was recreated",
        ),
    ),
    key=("cluster",),
    newest_by=("round",),
)

OPEN_TRANSACTIONS: Final = Table(
    "open_transactions",
    "One row per change of a partition of __consumer_offsets that an open transaction blocks for more than a few rounds: when it begins, when its owner becomes known, when it ends",
    (
        CLUSTER,
        Column("log_partition", INT, "Partition of __consumer_offsets"),
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("held", BOOLEAN, "Whether the partition is blocked; false in the row that ends it"),
        Column(
            "held_since",
            TIMESTAMP,
            "Time of the first round that saw the last stable offset at held_offset, UTC",
        ),
        Column("held_offset", LONG, "Last stable offset, where the transaction begins"),
        Column("waiting", LONG, "Offsets behind it at this round that nobody can read yet; 0 when it has ended"),
        Column("groups", INT, "Groups in the partition; their lag is unknown meanwhile. 0 when it has ended"),
        Column("producer_id", LONG, "Producer id of the transaction; NULL when the broker does not say"),
        Column(
            "transactional_id",
            STRING,
            "Its transactional id; NULL when no coordinator knows one for the producer, or the probe may not describe it",
        ),
    ),
    key=("cluster", "log_partition"),
    newest_by=("round",),
)
