"""The metrics of kafka_exporter 1.9.0 that tell of groups and offsets, by names, types and labels."""

from __future__ import annotations

from streaming.serve.metrics.exposition import Family, Level
from streaming.serve.metrics.others import NO_COMMIT, gauge, group_topics, topic_partitions, whole_topics
from streaming.serve.metrics.rows import MetricPartition, Scope, rows

# It reports this for a partition in which the group has committed nothing.
_NO_COMMIT = -1


def families(scope: Scope) -> list[Family]:
    """All of them but those of brokers and replicas."""
    labels = scope.labels
    found = list(group_topics(scope))
    # It shows a topic of a group only once the group has committed there.
    topics = [
        (f'consumergroup="{labels[one.group]}",topic="{labels[one.topic]}"', one)
        for one in found
        if one.committed is not None
    ]
    partitions = [(f'{at},partition="{row.partition}"', row) for at, one in topics for row in one.partitions]
    known = topic_partitions(found)
    ends = [
        (f'topic="{labels[topic]}",partition="{partition}"', bounds) for (_, topic, partition), bounds in known.items()
    ]
    counts = [
        (f'topic="{labels[topic]}"', len(bounds)) for (_, topic), bounds in whole_topics(scope, found, known).items()
    ]
    members = [
        (f'consumergroup="{labels[row["group_id"]]}"', row["members"]) for row in rows(scope, scope.snapshot.groups)
    ]
    return [
        gauge("kafka_consumergroup_members", "Members of the group.", Level.GROUP, members),
        gauge("kafka_consumergroup_lag_sum", "Lag of the group in one topic, where it is known.", Level.TOPIC,
              [(at, one.lag) for at, one in topics]),
        gauge("kafka_consumergroup_current_offset_sum", "Sum of the committed offsets in one topic.", Level.TOPIC,
              [(at, one.committed) for at, one in topics]),
        gauge("kafka_topic_partitions", "Partitions of the topic.", Level.TOPIC, counts),
        gauge("kafka_consumergroup_lag", "Lag of the group in one partition; -1 without a commit.", Level.PARTITION,
              [(at, _or_minus_one(row, row.lag)) for at, row in partitions]),
        gauge("kafka_consumergroup_current_offset", "Last committed offset; -1 without one.", Level.PARTITION,
              [(at, _or_minus_one(row, row.committed_offset)) for at, row in partitions]),
        gauge("kafka_topic_partition_current_offset", "High watermark.", Level.PARTITION,
              [(at, end) for at, (_, end) in ends]),
        gauge("kafka_topic_partition_oldest_offset", "Log start offset.", Level.PARTITION,
              [(at, start) for at, (start, _) in ends]),
    ]  # fmt: skip


def _or_minus_one(row: MetricPartition, value: int | None) -> int | None:
    return _NO_COMMIT if row.reason == NO_COMMIT else value
