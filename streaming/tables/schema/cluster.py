"""What belongs to no group: watched clusters, the job's batches, topics, records that could not be read, gaps."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BINARY,
    BOOLEAN,
    CLUSTER,
    DATE,
    DOUBLE,
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
    observed,
)

TOPICS: Final = observed(
    "topics",
    "One row per topic and look at it (once in a heartbeat), and a closing row when it is gone; without topics named __ and Evenkeel's own two",
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
            "Sum of high watermark minus log start: as many records at most. NULL where one of them is not known",
        ),
        Column(
            "produced_per_second",
            DOUBLE,
            "Offsets by which the high watermarks have grown since the look before, per second; NULL with produced_reason",
        ),
        Column(
            "produced_reason",
            STRING,
            "Why it is NULL: first_look, recreated, missing_rounds, offset_unknown (not known, or went back)",
        ),
        Column(
            "log_bytes",
            LONG,
            "Bytes of the leaders' logs on disk: one copy, without indexes and tiered segments; NULL with bytes_reason",
        ),
        Column(
            "produced_bytes_per_second_min",
            DOUBLE,
            "Growth of these logs since the look before, bytes per second, as stored. A lower bound: what retention or compaction took away, or a moved leader hides, is missing. NULL with bytes_reason",
        ),
        Column(
            "bytes_reason",
            STRING,
            "Why log_bytes or produced_bytes_per_second_min is NULL: no_right (Describe on the cluster), unsupported (brokers before 1.0), no_answer, size_unknown, or for the rate alone first_look, recreated, missing_rounds",
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
            "The first 20 of them by name, each cut at 1,000 characters. All of them are in lag_current",
        ),
        Column(
            "read_by_nobody",
            BOOLEAN,
            "No group has committed offsets of it or subscribes to it. Consumers without a group are not seen. NULL with read_by_nobody_reason, and in the closing row",
        ),
        Column(
            "read_by_nobody_since",
            TIMESTAMP,
            "Time of the first look that found it so, UTC; no look since has seen a reader. NULL unless read_by_nobody",
        ),
        Column(
            "read_by_nobody_reason",
            STRING,
            "Why read_by_nobody is NULL: filtered (the filters leave out groups), no_right (Describe on all groups), share_groups (what they read could not be asked), undescribed (a group's topics were not known at this look)",
        ),
    ),
    key=("cluster", "topic"),
)

QUARANTINE: Final = Table(
    "quarantine",
    "One row per record that could not be decoded, up to a hundred per partition and day, and one that counts the rest; of unknown types and newer versions one sample per type, version and day, with a count. A day is 24 hours of rounds",
    (
        CLUSTER,
        Column("topic", STRING, "Topic of the record: __consumer_offsets, or one of the probe's"),
        Column("partition", INT, "Its partition"),
        Column("record_offset", LONG, "Its offset"),
        Column("record_time", TIMESTAMP, "Its timestamp, UTC; NULL when that is not a valid time"),
        Column("event_date", DATE, "Day of record_time, UTC"),
        Column("kind", STRING, "undecodable: of a known type; unknown: of an unknown type or a newer version"),
        Column("key_type", INT, "Record type at the head of the key; NULL when the key is null or too short"),
        Column("value_version", INT, "Version at the head of the value; NULL when the value is null or too short"),
        Column("reason", STRING, "What is wrong with it"),
        Column("records", LONG, "Records that this row stands for; in a row that counts, those of the day so far"),
        Column("last_record_offset", LONG, "Offset of the last of them"),
        Column(
            "key",
            BINARY,
            "The key, cut to 16 KiB; NULL when it is null, or not kept",
        ),
        Column("value", BINARY, "The value, cut likewise; NULL when it is null, or not kept"),
        Column("key_size", INT, "Bytes of the whole key; NULL when it is null"),
        Column("value_size", INT, "Bytes of the whole value; NULL when it is null"),
        Column("sha256", STRING, "SHA-256 of key and value together when either was cut; NULL otherwise"),
    ),
    key=("cluster", "topic", "partition", "record_offset"),
    newest_by=("last_record_offset",),
    keep_days=None,
    time="record_time",
    # Timestamps in broken records are whatever somebody wrote: a folder per day of them could be any number.
    partition_by=(),
)

CLUSTERS: Final = Table(
    "clusters",
    "One row per cluster when it begins to be watched, and when it is closed because its entry left the settings file; a cluster of release 0.6, without a row, is watched",
    (
        CLUSTER,
        Column(
            "state",
            STRING,
            "watched; closed: nothing of it is the present any more, and no alert fires for it; its history stays",
        ),
        Column(
            "cluster_id",
            STRING,
            "Kafka's own id of the cluster, or for RocketMQ the name of the cluster; NULL when it is not known",
        ),
        Column("renamed_from", STRING, "Name under which the same cluster was watched before; NULL where it is new"),
        Column("fleet", STRINGS, "Names of all clusters that the settings file had then"),
        Column("written_time", TIMESTAMP, "When the row was written, by the writer's clock, UTC"),
    ),
    key=("cluster",),
    newest_by=("written_time",),
    keep_days=None,
    time="written_time",
    partition_by=(),
)

GAPS: Final = Table(
    "gaps",
    "One row per range of a topic that was deleted before we read it or truncated after that, per recreated topic, per time without rounds, and per rebuild of the job's state",
    (
        CLUSTER,
        Column(
            "kind",
            STRING,
            "log: records were deleted before we read them; truncated: records that we read are lost; recreated: the topic is another; rounds: no round closed; state: the job's state was rebuilt",
        ),
        Column("topic", STRING, "Topic of the records; NULL for rounds and state"),
        Column("partition", INT, "Its partition; NULL for rounds and state"),
        Column("from_offset", LONG, "First offset that is missing; NULL for rounds and state"),
        Column("to_offset", LONG, "First offset after the gap; NULL for rounds and state"),
        Column("from_time", TIMESTAMP, "Time of the last round before the gap, UTC; NULL for records"),
        Column("to_time", TIMESTAMP, "Time of the first round after it, UTC; NULL for records and state"),
        Column("reason", STRING, "Why, as far as known"),
    ),
    key=("cluster", "kind", "topic", "partition", "from_offset", "from_time"),
    newest_by=("to_offset", "to_time"),
    keep_days=None,
    time="to_time",
    partition_by=(),
)

BATCHES: Final = Table(
    "batches",
    "One row per batch of the job's query of a cluster, written at most a minute after its end; those of the last minute are lost when the job is killed",
    (
        CLUSTER,
        Column(
            "query_id", STRING, "Spark's id of the query; a new one with a new checkpoint, whose batches begin at 0"
        ),
        Column("batch", LONG, "Number of the batch"),
        Column("started_time", TIMESTAMP, "When it began, by the clock of the job's machine, UTC"),
        Column("event_date", DATE, "Day of started_time, UTC; partitions the table"),
        Column("duration_ms", LONG, "How long it took (Spark's triggerExecution), ms"),
        Column("latest_offset_ms", LONG, "Of that: looking for closed rounds; NULL for a batch that is run again"),
        Column("query_planning_ms", LONG, "Of that: planning the query"),
        Column("get_batch_ms", LONG, "Of that: handing the batch to the query"),
        Column("wal_commit_ms", LONG, "Of that: writing down what it reads, before it begins"),
        Column("add_batch_ms", LONG, "Of that: fetching, judging, and writing the tables"),
        Column("commit_offsets_ms", LONG, "Of that: writing down that it is done"),
        Column("rounds", INT, "Rounds that it took; NULL for a batch that is run again after a crash"),
        Column(
            "rounds_behind",
            INT,
            "Rounds that had closed and were left to later batches when it began: at least so many, as it looks at the next 2,000 records of the rounds topic. NULL with rounds",
        ),
        Column("input_rows", LONG, "Rows that the source handed over: one for each key and task, not one a record"),
        Column(
            "written_rows", LONG, "Rows that it appended to all tables; a batch that is run again appends the missing"
        ),
        Column(
            "state_rows", LONG, "Keys in the state after it: groups, topics, partitions with trouble; NULL if unknown"
        ),
        Column("state_bytes", LONG, "Memory of the state store by its own count, bytes; NULL if unknown"),
    ),
    key=("cluster",),
    newest_by=("started_time",),
    keep_days=35,
    time="started_time",
    every_batch=True,
    unique_by=("cluster", "query_id", "batch"),
    with_cluster=True,
)
