"""The metrics of kafka-lag-exporter 0.8.2, by names, types and labels (its `Metrics.scala`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from streaming.serve.metrics.exposition import Family, Level
from streaming.serve.metrics.others import NO_COMMIT, GroupTopic, gauge, group_topics, topic_partitions
from streaming.serve.metrics.rows import MetricPartition, Scope


def families(scope: Scope) -> list[Family]:
    """All of them but those of its JVM."""
    found = list(group_topics(scope))
    return [*_clusters(scope), *_groups(scope, found), *_topics(scope, found), *_partitions(scope, found)]


def _clusters(scope: Scope) -> list[Family]:
    of = scope.clusters.values()
    times = [
        (f'cluster_name="{scope.labels[c.name]}"', None if c.closed_ms is None else max(0, c.closed_ms - c.round_ms))
        for c in of
    ]
    return [gauge("kafka_consumergroup_poll_time_ms", "How long the newest round took.", Level.CLUSTER, times)]


def _groups(scope: Scope, found: Sequence[GroupTopic]) -> list[Family]:
    labels = scope.labels
    lags: dict[str, list[int]] = {}
    behind: dict[str, list[float]] = {}
    for one in found:
        at = f'cluster_name="{labels[one.cluster]}",group="{labels[one.group]}"'
        for row in one.partitions:
            if row.lag is not None:
                lags.setdefault(at, []).append(row.lag)
                low, _ = row.behind_s(scope.clusters[row.cluster])
                if low is not None:
                    behind.setdefault(at, []).append(low)
    return [
        gauge("kafka_consumergroup_group_max_lag", "Largest lag of a partition.", Level.GROUP,
              [(at, max(values)) for at, values in lags.items()]),
        gauge("kafka_consumergroup_group_max_lag_seconds", "How far the group is behind in time, at least.",
              Level.GROUP, [(at, max(values)) for at, values in behind.items()]),
        gauge("kafka_consumergroup_group_sum_lag", "Lag of the group, where it is known.", Level.GROUP,
              [(at, sum(values)) for at, values in lags.items()]),
    ]  # fmt: skip


def _topics(scope: Scope, found: Sequence[GroupTopic]) -> list[Family]:
    labels = scope.labels
    values = [
        (f'cluster_name="{labels[o.cluster]}",group="{labels[o.group]}",topic="{labels[o.topic]}"', o.lag)
        for o in found
    ]
    told = "Lag of the group in one topic, where it is known."
    return [gauge("kafka_consumergroup_group_topic_sum_lag", told, Level.TOPIC, values)]


def _partitions(scope: Scope, found: Sequence[GroupTopic]) -> list[Family]:
    labels = scope.labels
    rows = [
        (
            (
                f'cluster_name="{labels[row.cluster]}",group="{labels[row.group_id]}",topic="{labels[row.topic]}",'
                f'partition="{row.partition}",member_host="{labels[row.client_host]}",'
                f'consumer_id="{labels[row.member_id]}",client_id="{labels[row.client_id]}"'
            ),
            row,
        )
        for one in found
        for row in one.partitions
    ]
    ends = [
        (f'cluster_name="{labels[cluster]}",topic="{labels[topic]}",partition="{partition}"', bounds)
        for (cluster, topic, partition), bounds in topic_partitions(found).items()
    ]
    level = Level.PARTITION
    return [
        gauge("kafka_consumergroup_group_lag", "Lag of the group in one partition.", level,
              [(at, _or_nan(row, row.lag)) for at, row in rows]),
        gauge("kafka_consumergroup_group_lag_seconds", "How far it is behind there in time, at least.", level,
              [(at, _or_nan(row, row.behind_s(scope.clusters[row.cluster])[0])) for at, row in rows]),
        gauge("kafka_consumergroup_group_offset", "Last committed offset.", level,
              [(at, _or_nan(row, row.committed_offset)) for at, row in rows]),
        gauge("kafka_partition_latest_offset", "High watermark.", level, [(at, end) for at, (_, end) in ends]),
        gauge("kafka_partition_earliest_offset", "Log start offset.", level, [(at, start) for at, (start, _) in ends]),
    ]  # fmt: skip


def _or_nan(row: MetricPartition, value: float | None) -> float | None:
    """NaN where the group has committed nothing, as there; nothing where a value is not known."""
    return nan if row.reason == NO_COMMIT else value
