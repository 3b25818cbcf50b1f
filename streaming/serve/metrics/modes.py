"""Other exporters' metrics of groups and offsets, as tables: their names, types and labels with our numbers.

Sources: kafka-lag-exporter 0.8.2 (`Metrics.scala`, without those of its JVM), kafka_exporter 1.9.0 and kminion 2.3.5
(`exporter.go`), both without those of brokers, replicas, sizes and settings of topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib.metadata import version
from itertools import groupby
from math import nan
from typing import Any, Final, NamedTuple

from streaming.serve.metrics.exposition import Family, Level, sample
from streaming.serve.metrics.rows import MetricPartition, Scope, partitions, rows

_NO_COMMIT = "no_commit"
"""`lag.reason` of a partition without a committed offset."""


class GroupTopic(NamedTuple):
    """One topic of one group, or of a group all its partitions; with topics that the group has left.

    Attributes:
        cluster: Name of the cluster.
        group: Group id.
        topic: Topic; "" for all of them.
        partitions: The partitions, by number.
    """

    cluster: str
    group: str
    topic: str
    partitions: list[MetricPartition]

    def known(self, column: str) -> list[int]:
        """The known values of a column."""
        values = (getattr(row, column) for row in self.partitions)
        return [value for value in values if value is not None]

    def total(self, column: str) -> int | None:
        """Sum of what is known; None when nothing is."""
        known = self.known(column)
        return sum(known) if known else None

    @property
    def owners(self) -> list[str]:
        """The owner of each partition that has one."""
        return [row.member_id for row in self.partitions if row.member_id is not None]

    def behind_s(self, scope: Scope) -> float | None:
        """How far it is behind in time at least, s; None where that is not known."""
        bounds = [row.behind_s(scope.clusters[row.cluster])[0] for row in self.partitions if row.lag is not None]
        return max((low for low in bounds if low is not None), default=None)


class PartitionEnds(NamedTuple):
    """Log start offset and high watermark of a partition, by the newest row of any group; None where not known."""

    cluster: str
    topic: str
    partition: int
    start: int | None
    end: int | None


class WholeTopic(NamedTuple):
    """A topic of which no partition can be missing."""

    cluster: str
    topic: str
    ends: list[PartitionEnds]

    def total(self, column: str) -> int | None:
        """None unless all are known: half of a sum would look like a value."""
        values = [getattr(one, column) for one in self.ends]
        return None if None in values else sum(values)


class Of(Enum):
    """What a metric has a series for."""

    BUILD, CLUSTER, GROUP, GROUP_PARTITIONS, GROUP_TOPIC, TOPIC, PARTITION, ENDS = range(8)


_LEVELS: Final = {
    Of.BUILD: Level.CLUSTER,
    Of.CLUSTER: Level.CLUSTER,
    Of.GROUP: Level.GROUP,
    Of.GROUP_PARTITIONS: Level.GROUP,
    Of.GROUP_TOPIC: Level.TOPIC,
    Of.TOPIC: Level.TOPIC,
    Of.PARTITION: Level.PARTITION,
    Of.ENDS: Level.PARTITION,
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a mode.

    Attributes:
        name: Its name.
        of: What it has a series for.
        help: What it means, in one line.
        value: Its value from a row of that; None leaves the series out.
        more: Labels beside those of the mode, with the columns that they show.
    """

    name: str
    of: Of
    help: str
    value: Callable[[Any, Scope], float | None]
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mode:
    """The metrics of an exporter.

    Attributes:
        labels: By what a series is for, its labels with the columns that they show.
        metrics: The metrics.
        without_commit: Value of a partition in which the group has committed nothing; None for what is known of it.
        needs_commit: Whether a topic of a group is shown only once the group has committed there.
    """

    labels: Mapping[Of, Mapping[str, str]]
    metrics: Sequence[Metric]
    without_commit: float | None = None
    needs_commit: bool = False


def families(mode: str, scope: Scope) -> list[Family]:
    """The metrics of a mode, by its name."""
    chosen = MODES[mode]
    shown = _rows(scope, needs_commit=chosen.needs_commit)
    return [_family(chosen, metric, shown[metric.of], scope) for metric in chosen.metrics]


def _family(mode: Mode, metric: Metric, of: Iterable[Any], scope: Scope) -> Family:
    samples = []
    named = {**mode.labels[metric.of], **metric.more}
    for row in of:
        value = metric.value(row, scope)
        if metric.of is Of.PARTITION and mode.without_commit is not None and row.reason == _NO_COMMIT:
            value = mode.without_commit
        if value is not None:
            shown = (f'{label}="{scope.labels[_text(row, column)]}"' for label, column in named.items())
            samples.append(sample(",".join(shown), value))
    return Family(metric.name, "gauge", metric.help, samples, _LEVELS[metric.of])


def _text(row: Any, column: str) -> str | None:
    value = row.get(column) if isinstance(row, dict) else getattr(row, column)
    return None if value is None else str(value)


def _rows(scope: Scope, *, needs_commit: bool) -> dict[Of, Sequence[Any]]:
    """The rows that metrics show, by what these have a series for."""
    of_groups = [
        GroupTopic(cluster, group, topic, list(of))
        for (cluster, group, topic), of in groupby(partitions(scope), lambda row: row[:3])
    ]
    ends = list(_ends(of_groups))
    shown = [one for one in of_groups if one.total("committed_offset") is not None] if needs_commit else of_groups
    whole = [
        GroupTopic(cluster, group, "", [row for one in of for row in one.partitions])
        for (cluster, group), of in groupby(of_groups, lambda one: one[:2])
    ]
    return {
        Of.BUILD: [{"version": version("evenkeel")}],
        Of.CLUSTER: list(scope.clusters.values()),
        Of.GROUP: list(rows(scope, scope.snapshot.groups)),
        Of.GROUP_PARTITIONS: whole,
        Of.GROUP_TOPIC: shown,
        Of.TOPIC: _whole_topics(scope, of_groups, ends),
        Of.PARTITION: [row for one in shown for row in one.partitions],
        Of.ENDS: ends,
    }


def _ends(found: Iterable[GroupTopic]) -> Iterator[PartitionEnds]:
    newest: dict[tuple[str, str, int], MetricPartition] = {}
    for one in found:
        for row in one.partitions:
            key = (row.cluster, row.topic, row.partition)
            if key not in newest or row.round > newest[key].round:
                newest[key] = row
    for key, row in sorted(newest.items()):
        yield PartitionEnds(*key, row.log_start_offset, row.high_watermark)


def _whole_topics(scope: Scope, found: Sequence[GroupTopic], ends: Sequence[PartitionEnds]) -> list[WholeTopic]:
    """The topics to which a group with members subscribes: it has a row for each of their partitions.

    Such a group has as many rows of partitions as its own row counts. For a topic that is only committed to, the
    tables have only the partitions with commits.
    """
    seen = Counter[tuple[str, str]]()
    for one in found:
        seen[one.cluster, one.group] += sum(row.subscribed is not False for row in one.partitions)
    whole = {
        (row["cluster"], row["group_id"])
        for row in rows(scope, scope.snapshot.groups)
        if row["members"] and row["partitions"] == seen[row["cluster"], row["group_id"]]
    }
    topics = {
        (one.cluster, one.topic)
        for one in found
        if (one.cluster, one.group) in whole and all(row.subscribed is not False for row in one.partitions)
    }
    return [
        WholeTopic(cluster, topic, list(of))
        for (cluster, topic), of in groupby(ends, lambda one: one[:2])
        if (cluster, topic) in topics
    ]


def _took_ms(row: Any, _: Scope) -> int | None:
    return None if row.closed_ms is None else max(0, row.closed_ms - row.round_ms)


_LAG_HELP = "Lag of the group in one topic, where it is known."

_KAFKA_LAG_EXPORTER = Mode(
    labels={
        Of.CLUSTER: {"cluster_name": "name"},
        Of.GROUP_PARTITIONS: {"cluster_name": "cluster", "group": "group"},
        Of.GROUP_TOPIC: {"cluster_name": "cluster", "group": "group", "topic": "topic"},
        Of.PARTITION: {
            "cluster_name": "cluster",
            "group": "group_id",
            "topic": "topic",
            "partition": "partition",
            "member_host": "client_host",
            "consumer_id": "member_id",
            "client_id": "client_id",
        },
        Of.ENDS: {"cluster_name": "cluster", "topic": "topic", "partition": "partition"},
    },
    metrics=(
        Metric("kafka_consumergroup_poll_time_ms", Of.CLUSTER, "How long the newest round took.", _took_ms),
        Metric(
            "kafka_consumergroup_group_max_lag",
            Of.GROUP_PARTITIONS,
            "Largest lag of a partition.",
            lambda one, _: max(one.known("lag"), default=None),
        ),
        Metric(
            "kafka_consumergroup_group_max_lag_seconds",
            Of.GROUP_PARTITIONS,
            "How far the group is behind in time, at least.",
            lambda one, scope: one.behind_s(scope),
        ),
        Metric(
            "kafka_consumergroup_group_sum_lag",
            Of.GROUP_PARTITIONS,
            "Lag of the group, where it is known.",
            lambda one, _: one.total("lag"),
        ),
        Metric("kafka_consumergroup_group_topic_sum_lag", Of.GROUP_TOPIC, _LAG_HELP, lambda one, _: one.total("lag")),
        Metric(
            "kafka_consumergroup_group_lag",
            Of.PARTITION,
            "Lag of the group in one partition.",
            lambda row, _: row.lag,
        ),
        Metric(
            "kafka_consumergroup_group_lag_seconds",
            Of.PARTITION,
            "How far it is behind there in time, at least.",
            lambda row, scope: row.behind_s(scope.clusters[row.cluster])[0],
        ),
        Metric(
            "kafka_consumergroup_group_offset",
            Of.PARTITION,
            "Last committed offset.",
            lambda row, _: row.committed_offset,
        ),
        Metric("kafka_partition_latest_offset", Of.ENDS, "High watermark.", lambda one, _: one.end),
        Metric("kafka_partition_earliest_offset", Of.ENDS, "Log start offset.", lambda one, _: one.start),
    ),
    without_commit=nan,
)

_KAFKA_EXPORTER = Mode(
    labels={
        Of.GROUP: {"consumergroup": "group_id"},
        Of.GROUP_TOPIC: {"consumergroup": "group", "topic": "topic"},
        Of.TOPIC: {"topic": "topic"},
        Of.PARTITION: {"consumergroup": "group_id", "topic": "topic", "partition": "partition"},
        Of.ENDS: {"topic": "topic", "partition": "partition"},
    },
    metrics=(
        Metric("kafka_consumergroup_members", Of.GROUP, "Members of the group.", lambda row, _: row["members"]),
        Metric("kafka_consumergroup_lag_sum", Of.GROUP_TOPIC, _LAG_HELP, lambda one, _: one.total("lag")),
        Metric(
            "kafka_consumergroup_current_offset_sum",
            Of.GROUP_TOPIC,
            "Sum of the committed offsets in one topic.",
            lambda one, _: one.total("committed_offset"),
        ),
        Metric("kafka_topic_partitions", Of.TOPIC, "Partitions of the topic.", lambda one, _: len(one.ends)),
        Metric(
            "kafka_consumergroup_lag",
            Of.PARTITION,
            "Lag of the group in one partition; -1 without a commit.",
            lambda row, _: row.lag,
        ),
        Metric(
            "kafka_consumergroup_current_offset",
            Of.PARTITION,
            "Last committed offset; -1 without one.",
            lambda row, _: row.committed_offset,
        ),
        Metric("kafka_topic_partition_current_offset", Of.ENDS, "High watermark.", lambda one, _: one.end),
        Metric("kafka_topic_partition_oldest_offset", Of.ENDS, "Log start offset.", lambda one, _: one.start),
    ),
    without_commit=-1,
    needs_commit=True,
)

_GROUP, _TOPIC = "kminion_kafka_consumer_group", "kminion_kafka_topic"

_KMINION = Mode(
    labels={
        Of.BUILD: {"version": "version"},
        Of.GROUP: {"group_id": "group_id"},
        Of.GROUP_TOPIC: {"group_id": "group", "topic_name": "topic"},
        Of.TOPIC: {"topic_name": "topic"},
        Of.PARTITION: {"group_id": "group_id", "topic_name": "topic", "partition_id": "partition"},
        Of.ENDS: {"topic_name": "topic", "partition_id": "partition"},
    },
    metrics=(
        Metric("kminion_exporter_up", Of.BUILD, "1; the release of Evenkeel.", lambda _, __: 1),
        Metric(
            f"{_GROUP}_info",
            Of.GROUP,
            "1 if the group is stable, otherwise 0.",
            lambda row, _: int(row["state"] == "Stable"),
            {"protocol": "strategy", "protocol_type": "protocol_type", "state": "state", "coordinator_id": "none"},
        ),
        Metric(f"{_GROUP}_members", Of.GROUP, "Members of the group.", lambda row, _: row["members"]),
        # It has no series for a group in which every member owns something.
        Metric(
            f"{_GROUP}_empty_members",
            Of.GROUP,
            "Members that own nothing.",
            lambda row, _: row["idle_members"] or None,
        ),
        Metric(
            f"{_TOPIC}_high_water_mark_sum", Of.TOPIC, "Sum of the high watermarks.", lambda one, _: one.total("end")
        ),
        Metric(
            f"{_TOPIC}_low_water_mark_sum", Of.TOPIC, "Sum of the log start offsets.", lambda one, _: one.total("start")
        ),
        Metric(f"{_GROUP}_topic_lag", Of.GROUP_TOPIC, _LAG_HELP, lambda one, _: one.total("lag")),
        Metric(
            f"{_GROUP}_topic_offset_sum",
            Of.GROUP_TOPIC,
            "Sum of the committed offsets in one topic.",
            lambda one, _: one.total("committed_offset"),
        ),
        Metric(
            f"{_GROUP}_topic_members",
            Of.GROUP_TOPIC,
            "Members that own a partition of the topic.",
            lambda one, _: len(set(one.owners)) or None,
        ),
        Metric(
            f"{_GROUP}_topic_assigned_partitions",
            Of.GROUP_TOPIC,
            "Partitions of the topic that a member owns.",
            lambda one, _: len(one.owners) or None,
        ),
        Metric(
            f"{_GROUP}_topic_partition_lag",
            Of.PARTITION,
            "Lag of the group in one partition.",
            lambda row, _: row.lag,
        ),
        Metric(f"{_TOPIC}_partition_high_water_mark", Of.ENDS, "High watermark.", lambda one, _: one.end),
        Metric(f"{_TOPIC}_partition_low_water_mark", Of.ENDS, "Log start offset.", lambda one, _: one.start),
    ),
)

MODES: Final[Mapping[str, Mode]] = {
    "kafka-lag-exporter": _KAFKA_LAG_EXPORTER,
    "kafka_exporter": _KAFKA_EXPORTER,
    "kminion": _KMINION,
}
"""Other exporters' metrics by the mode's name."""

NEED_CLUSTER: Final = frozenset(
    name for name, mode in MODES.items() if not any("cluster_name" in labels for labels in mode.labels.values())
)
"""Modes whose names have no label for the cluster."""
