"""The topics of the cluster, whether or not a group reads them."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BOOLEAN,
    CLUSTER,
    DOUBLE,
    HEARTBEAT,
    INT,
    LONG,
    ROUND,
    ROUND_DATE,
    ROUND_TIME,
    STRING,
    STRINGS,
    TIMESTAMP,
    Column,
    Table,
)

TOPICS: Final = Table(
    "topics",
    "One row per topic of the cluster and look at it (once in a heartbeat), and a closing row when it is gone; Kafka's internal topics, others named __ and Evenkeel's own two are left out",
    (
        CLUSTER,
        Column("topic", STRING, "Topic"),
        ROUND,
        ROUND_TIME,
        ROUND_DATE,
        Column("ended", BOOLEAN, "Last row of this topic: it is gone"),
        Column(
            "ended_reason",
            STRING,
            "deleted, not_visible (the right Describe on it is missing now) or filtered (the configuration leaves it out now); NULL unless ended",
        ),
        Column("topic_id", STRING, "Kafka's topic id; NULL from brokers before 2.8, and in the closing row"),
        Column("partitions", INT, "Its partitions; 0 in the closing row"),
        Column("offline_partitions", INT, "Those without a leader"),
        Column(
            "records_max",
            LONG,
            "Sum of high watermark minus log start: as many records at most, since compaction and transactions leave gaps. NULL where one of them is not known",
        ),
        Column(
            "produced_per_second",
            DOUBLE,
            "Offsets by which the high watermarks have grown since the look before, per second; NULL with produced_reason",
        ),
        Column(
            "produced_reason",
            STRING,
            "Why it is NULL: first_look, recreated (another topic of this name), missing_rounds (the time between is not certain), offset_unknown (a high watermark is not known, or went back)",
        ),
        Column(
            "log_bytes",
            LONG,
            "Bytes of the leaders' logs on disk: one copy, without indexes and tiered segments; NULL with bytes_reason",
        ),
        Column(
            "produced_bytes_per_second_min",
            DOUBLE,
            "Bytes by which these logs have grown since the look before, per second. At least so much was written, as stored (compressed): what retention or compaction has taken away meanwhile is missing, and so is a partition whose leader has moved. NULL with bytes_reason",
        ),
        Column(
            "bytes_reason",
            STRING,
            "Why log_bytes or produced_bytes_per_second_min is NULL: no_right (Describe on the cluster is not granted), unsupported (brokers before 1.0), no_answer, size_unknown (of a partition), or first_look, recreated, missing_rounds as in produced_reason, for the rate alone",
        ),
        Column("rates_over_seconds", DOUBLE, "Time between the two looks; NULL where there is no rate over it"),
        Column(
            "groups",
            INT,
            "Watched groups that read it: they have committed offsets of it, or subscribe to it; 0 in the closing row",
        ),
        Column(
            "readers",
            STRINGS,
            "The first 20 of them by name; a name of more than 1,000 characters is cut. All of them, with their lag, are in lag_current",
        ),
        Column(
            "read_by_nobody",
            BOOLEAN,
            "No group reads it: none has committed offsets of it or subscribes to it. Consumers without a group are not seen. NULL with read_by_nobody_reason, and in the closing row",
        ),
        Column(
            "read_by_nobody_since",
            TIMESTAMP,
            "Time of the first look that found it so, UTC; no look since has seen a reader. NULL unless read_by_nobody",
        ),
        Column(
            "read_by_nobody_reason",
            STRING,
            "Which groups may read it without being seen: filtered (groups that the configuration leaves out), no_right (the right Describe is not granted for all groups), share_groups (share groups have no committed offsets), undescribed (the topics of a group were not known at this look); NULL where read_by_nobody is known",
        ),
    ),
    key=("cluster", "topic"),
    newest_by=("round",),
    keep_days=35,
    time="round_time",
    of_rounds=True,
    repeats=HEARTBEAT,
    every_batch=True,
    closes=True,
)
