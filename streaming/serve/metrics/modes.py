"""Our own metrics (`evenkeel_*`), and other exporters' of groups and offsets: their names and labels with our numbers.

Sources: kafka-lag-exporter 0.8.2 (`Metrics.scala`, without those of its JVM), kafka_exporter 1.9.0 and kminion 2.3.5
(`exporter.go`), both without those of brokers, replicas, sizes and settings of topics. docs/metrics.md has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streaming.serve.metrics.families import Metric, Mode

OWN: Final = "evenkeel"

_CLUSTER: Final = {"cluster": "cluster"}
_OF_GROUP: Final = {"cluster": "cluster", "group": "group_id"}
_OF_TOPIC: Final = {**_OF_GROUP, "topic": "topic"}

_OURS = Mode(
    labels={
        "rounds": _CLUSTER,
        "batches": _CLUSTER,
        "batch_phases": {**_CLUSTER, "phase": "phase"},
        "alerts": {**_CLUSTER, "rule": "rule", "severity": "severity"},
        "deliveries": {**_CLUSTER, "target": "target", "outcome": "outcome"},
        "groups": _OF_GROUP,
        "findings": {**_OF_GROUP, "finding": "finding"},
        "rebalances": _OF_GROUP,
        "group_topics": _OF_TOPIC,
        "partitions": {**_OF_TOPIC, "partition": "partition"},
    },
    metrics=(
        Metric("evenkeel_cluster_groups", "rounds", "groups", "Groups in the newest round."),
        Metric("evenkeel_round_interval_seconds", "rounds", "interval_seconds",
               "Time between two rounds of the probe."),
        Metric("evenkeel_round_timestamp_seconds", "rounds", "round_time",
               "When the newest round was opened, by the broker's clock."),
        Metric("evenkeel_held_log_partitions", "rounds", "held_partitions",
               "Partitions of the offsets log that open transactions block: the lag of their groups is not known."),
        Metric("evenkeel_undecoded_records", "rounds", "undecoded",
               "Records that could not be decoded, as far as the lake holds them (table quarantine)."),
        Metric("evenkeel_gaps", "rounds", "gaps",
               "Ranges deleted before we read them, as far as the lake holds them (table gaps)."),
        Metric("evenkeel_alerts_firing", "alerts", "firing", "Alerts of Evenkeel's own that fire."),
        Metric("evenkeel_alert_deliveries", "deliveries", "deliveries",
               "Transitions of alerts by the newest outcome of their delivery, as far as the lake holds them."),
        Metric("evenkeel_job_batch_timestamp_seconds", "batches", "started_time",
               "When the newest batch of the job began, by its machine's clock; the lake has it a minute later."),
        Metric("evenkeel_job_batch_duration_seconds", "batches", "duration_seconds", "How long it took."),
        Metric("evenkeel_job_batch_phase_seconds", "batch_phases", "phase_seconds", "What took its time, by Spark."),
        Metric("evenkeel_job_batch_rounds", "batches", "rounds", "Rounds that it took."),
        Metric("evenkeel_job_rounds_behind", "batches", "rounds_behind",
               "Rounds that had closed and were left to later batches, at least."),
        Metric("evenkeel_job_batch_input_rows", "batches", "input_rows", "Rows that the source handed over in it."),
        Metric("evenkeel_job_batch_written_rows", "batches", "written_rows", "Rows that it appended to all tables."),
        Metric("evenkeel_job_state_rows", "batches", "state_rows", "Keys in the job's state after it."),
        Metric("evenkeel_job_state_bytes", "batches", "state_bytes", "Memory of the state store, by its own count."),
        Metric("evenkeel_group_lag_offsets", "groups", "lag_total",
               "Offsets that the group has still to read, in partitions with a known lag."),
        Metric("evenkeel_group_lag_max_offsets", "groups", "lag_max", "Largest lag of one partition."),
        Metric("evenkeel_group_lag_unknown_partitions", "groups", "lag_unknown", "Partitions whose lag is not known."),
        Metric("evenkeel_group_partitions", "groups", "partitions",
               "Partitions of the topics that the group subscribes to."),
        Metric("evenkeel_group_assigned_partitions", "groups", "assigned_partitions",
               "Partitions that a member owns."),
        Metric("evenkeel_group_members", "groups", "members", "Members of the group."),
        Metric("evenkeel_group_idle_members", "groups", "idle_members", "Members that own nothing."),
        Metric("evenkeel_group_drifted_partitions", "groups", "drifted_count",
               "Partitions of the newest decision without the expected owner."),
        Metric("evenkeel_group_strategy_mismatch", "groups", "strategy_mismatch",
               "1 if the group runs another strategy than the settings expect."),
        Metric("evenkeel_group_imbalance_ratio", "groups", "imbalance",
               "Most partitions of a member, over the mean, minus 1."),
        Metric("evenkeel_group_imbalance_optimal_ratio", "groups", "imbalance_optimal",
               "The least imbalance that any assignment could have."),
        Metric("evenkeel_group_verdict", "groups", "has_verdict", "1 for the verdict on the newest decision.",
               more={"verdict": "verdict"}),
        Metric("evenkeel_group_state", "groups", "has_state", "1 for the coordinator's state of the group.",
               more={"state": "state"}),
        Metric("evenkeel_group_lag_status", "groups", "has_lag_status",
               "1 for the worst status of a partition's lag.", more={"lag_status": "lag_status"}),
        Metric("evenkeel_group_finding", "findings", "holds", "1 for each finding that holds now."),
        Metric("evenkeel_group_last_decision_timestamp_seconds", "groups", "last_decision_time",
               "When the newest decision was recorded."),
        Metric("evenkeel_group_time_behind_min_seconds", "groups", "newest_time",
               "The group's oldest unread record had been readable for at least so long at the newest round.",
               since="unread_max"),
        Metric("evenkeel_group_time_behind_max_seconds", "groups", "newest_time",
               "And for no longer than this; absent where no upper bound is known.", since="unread_min"),
        Metric("evenkeel_group_rebalances_last_hour", "rebalances", "rebalances",
               "Rebalances in the hour before the newest round; absent without any."),
        Metric("evenkeel_group_partitions_moved_last_hour", "rebalances", "partitions_moved",
               "Partitions that these rebalances moved from one owner to another, where that is known."),
        Metric("evenkeel_group_topic_lag_offsets", "group_topics", "read_lag",
               "The group's lag in one topic, in partitions with a known lag."),
        Metric("evenkeel_group_topic_lag_unknown_partitions", "group_topics", "read_unknown",
               "Partitions of the topic whose lag is not known."),
        Metric("evenkeel_group_topic_time_behind_min_seconds", "group_topics", "newest_time",
               "The oldest unread record of the topic had been readable for at least so long at the newest round.",
               since="read_unread_max"),
        Metric("evenkeel_partition_lag_offsets", "partitions", "lag", "The group's lag in one partition."),
        Metric("evenkeel_partition_time_behind_min_seconds", "partitions", "newest_time",
               "Lower bound of how far the group is behind in time.", since="unread_max"),
        Metric("evenkeel_partition_time_behind_max_seconds", "partitions", "newest_time",
               "Upper bound of the same.", since="unread_min"),
        Metric("evenkeel_partition_committed_offset", "partitions", "committed_offset", "Last committed offset."),
        Metric("evenkeel_partition_high_watermark", "partitions", "high_watermark",
               "High watermark, as the group's row saw it."),
    ),
    shown={"partitions": "is_read"},
)  # fmt: skip

_LAG_HELP = "Lag of the group in one topic, where it is known."

_KAFKA_LAG_EXPORTER = Mode(
    labels={
        "rounds": {"cluster_name": "cluster"},
        "group_sums": {"cluster_name": "cluster", "group": "group_id"},
        "group_topics": {"cluster_name": "cluster", "group": "group_id", "topic": "topic"},
        "partitions": {
            "cluster_name": "cluster",
            "group": "group_id",
            "topic": "topic",
            "partition": "partition",
            "member_host": "client_host",
            "consumer_id": "member_id",
            "client_id": "client_id",
        },
        "ends": {"cluster_name": "cluster", "topic": "topic", "partition": "partition"},
    },
    metrics=(
        Metric("kafka_consumergroup_poll_time_ms", "rounds", "closed_time", "How long the newest round took.",
               since="round_time", per_second=1000),
        Metric("kafka_consumergroup_group_max_lag", "group_sums", "lag_max", "Largest lag of a partition."),
        Metric("kafka_consumergroup_group_max_lag_seconds", "group_sums", "newest_time",
               "How far the group is behind in time, at least.", since="unread_max"),
        Metric("kafka_consumergroup_group_sum_lag", "group_sums", "lag", "Lag of the group, where it is known."),
        Metric("kafka_consumergroup_group_topic_sum_lag", "group_topics", "lag", _LAG_HELP),
        Metric("kafka_consumergroup_group_lag", "partitions", "lag", "Lag of the group in one partition."),
        Metric("kafka_consumergroup_group_lag_seconds", "partitions", "newest_time",
               "How far it is behind there in time, at least.", since="unread_max"),
        Metric("kafka_consumergroup_group_offset", "partitions", "committed_offset", "Last committed offset."),
        Metric("kafka_partition_latest_offset", "ends", "high_watermark", "High watermark."),
        Metric("kafka_partition_earliest_offset", "ends", "log_start_offset", "Log start offset."),
    ),
    without_commit="NaN",
)  # fmt: skip

_KAFKA_EXPORTER = Mode(
    labels={
        "groups": {"consumergroup": "group_id"},
        "group_topics": {"consumergroup": "group_id", "topic": "topic"},
        "topics": {"topic": "topic"},
        "partitions": {"consumergroup": "group_id", "topic": "topic", "partition": "partition"},
        "ends": {"topic": "topic", "partition": "partition"},
    },
    metrics=(
        Metric("kafka_consumergroup_members", "groups", "members", "Members of the group."),
        Metric("kafka_consumergroup_lag_sum", "group_topics", "lag", _LAG_HELP),
        Metric("kafka_consumergroup_current_offset_sum", "group_topics", "committed",
               "Sum of the committed offsets in one topic."),
        Metric("kafka_topic_partitions", "topics", "partitions", "Partitions of the topic."),
        Metric("kafka_consumergroup_lag", "partitions", "lag",
               "Lag of the group in one partition; -1 without a commit."),
        Metric("kafka_consumergroup_current_offset", "partitions", "committed_offset",
               "Last committed offset; -1 without one."),
        Metric("kafka_topic_partition_current_offset", "ends", "high_watermark", "High watermark."),
        Metric("kafka_topic_partition_oldest_offset", "ends", "log_start_offset", "Log start offset."),
    ),
    without_commit="-1",
    shown={"group_topics": "has_commits", "partitions": "has_commits"},
)  # fmt: skip

_GROUP, _TOPIC = "kminion_kafka_consumer_group", "kminion_kafka_topic"

_KMINION = Mode(
    labels={
        "build": {"version": "version"},
        "groups": {"group_id": "group_id"},
        "group_topics": {"group_id": "group_id", "topic_name": "topic"},
        "topics": {"topic_name": "topic"},
        "partitions": {"group_id": "group_id", "topic_name": "topic", "partition_id": "partition"},
        "ends": {"topic_name": "topic", "partition_id": "partition"},
    },
    metrics=(
        Metric("kminion_exporter_up", "build", "up", "1; the release of Evenkeel."),
        Metric(f"{_GROUP}_info", "groups", "is_stable", "1 if the group is stable, otherwise 0.",
               more={"protocol": "strategy", "protocol_type": "protocol_type", "state": "state", "coordinator_id": ""}),
        Metric(f"{_GROUP}_members", "groups", "members", "Members of the group."),
        # It has no series for a group in which every member owns something.
        Metric(f"{_GROUP}_empty_members", "groups", "idle_some", "Members that own nothing."),
        Metric(f"{_TOPIC}_high_water_mark_sum", "topics", "ends", "Sum of the high watermarks."),
        Metric(f"{_TOPIC}_low_water_mark_sum", "topics", "starts", "Sum of the log start offsets."),
        Metric(f"{_GROUP}_topic_lag", "group_topics", "lag", _LAG_HELP),
        Metric(f"{_GROUP}_topic_offset_sum", "group_topics", "committed", "Sum of the committed offsets in one topic."),
        Metric(f"{_GROUP}_topic_members", "group_topics", "members", "Members that own a partition of the topic."),
        Metric(f"{_GROUP}_topic_assigned_partitions", "group_topics", "assigned",
               "Partitions of the topic that a member owns."),
        Metric(f"{_GROUP}_topic_partition_lag", "partitions", "lag", "Lag of the group in one partition."),
        Metric(f"{_TOPIC}_partition_high_water_mark", "ends", "high_watermark", "High watermark."),
        Metric(f"{_TOPIC}_partition_low_water_mark", "ends", "log_start_offset", "Log start offset."),
    ),
)  # fmt: skip

MODES: Final[Mapping[str, Mode]] = {
    OWN: _OURS,
    "kafka-lag-exporter": _KAFKA_LAG_EXPORTER,
    "kafka_exporter": _KAFKA_EXPORTER,
    "kminion": _KMINION,
}
"""Our own metrics, and other exporters', by the mode's name."""
