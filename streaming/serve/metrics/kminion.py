"""The metrics of kminion 2.3.5 that tell of groups and offsets, by names, types and labels (its `exporter.go`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from streaming.serve.metrics.exposition import Family, Level
from streaming.serve.metrics.others import gauge, group_topics, topic_partitions, whole_topics
from streaming.serve.metrics.rows import Scope, rows

_GROUP = "kminion_kafka_consumer_group"
_TOPIC = "kminion_kafka_topic"
_PARTITION = "kminion_kafka_topic_partition"


def families(scope: Scope) -> list[Family]:
    """All of them but those of brokers, sizes, settings of topics, and its own end-to-end check."""
    return [*_groups(scope), *_topics(scope)]


def _groups(scope: Scope) -> list[Family]:
    labels = scope.labels
    groups = [(f'group_id="{labels[row["group_id"]]}"', row) for row in rows(scope, scope.snapshot.groups)]
    info = [
        (
            (
                f'{at},protocol="{labels[row["strategy"]]}",protocol_type="{labels[row["protocol_type"]]}",'
                f'state="{labels[row["state"]]}",coordinator_id=""'
            ),
            int(row["state"] == "Stable"),
        )
        for at, row in groups
    ]
    return [
        gauge("kminion_exporter_up", "1; the release of Evenkeel.", Level.CLUSTER,
              [(f'version="{version("evenkeel")}"', 1)]),
        gauge(f"{_GROUP}_info", "1 if the group is stable, otherwise 0.", Level.GROUP, info),
        gauge(f"{_GROUP}_members", "Members of the group.", Level.GROUP, [(at, row["members"]) for at, row in groups]),
        # (It has no series for a group in which every member owns something.)
        gauge(f"{_GROUP}_empty_members", "Members that own nothing.", Level.GROUP,
              [(at, row["idle_members"] or None) for at, row in groups]),
    ]  # fmt: skip


def _topics(scope: Scope) -> list[Family]:
    labels = scope.labels
    found = list(group_topics(scope))
    topics = [(f'group_id="{labels[one.group]}",topic_name="{labels[one.topic]}"', one) for one in found]
    owners = [(at, [row.member_id for row in one.partitions if row.member_id is not None]) for at, one in topics]
    lags = [(f'{at},partition_id="{row.partition}"', row.lag) for at, one in topics for row in one.partitions]
    known = topic_partitions(found)
    ends = [
        (f'topic_name="{labels[topic]}",partition_id="{partition}"', bounds)
        for (_, topic, partition), bounds in known.items()
    ]
    whole = [
        (f'topic_name="{labels[topic]}"', bounds) for (_, topic), bounds in whole_topics(scope, found, known).items()
    ]
    return [
        gauge(f"{_TOPIC}_high_water_mark_sum", "Sum of the high watermarks.", Level.TOPIC,
              [(at, _sum([end for _, end in bounds])) for at, bounds in whole]),
        gauge(f"{_TOPIC}_low_water_mark_sum", "Sum of the log start offsets.", Level.TOPIC,
              [(at, _sum([start for start, _ in bounds])) for at, bounds in whole]),
        gauge(f"{_GROUP}_topic_lag", "Lag of the group in one topic, where it is known.", Level.TOPIC,
              [(at, one.lag) for at, one in topics]),
        gauge(f"{_GROUP}_topic_offset_sum", "Sum of the committed offsets in one topic.", Level.TOPIC,
              [(at, one.committed) for at, one in topics]),
        gauge(f"{_GROUP}_topic_members", "Members that own a partition of the topic.", Level.TOPIC,
              [(at, len(set(members)) or None) for at, members in owners]),
        gauge(f"{_GROUP}_topic_assigned_partitions", "Partitions of the topic that a member owns.", Level.TOPIC,
              [(at, len(members) or None) for at, members in owners]),
        gauge(f"{_GROUP}_topic_partition_lag", "Lag of the group in one partition.", Level.PARTITION, lags),
        gauge(f"{_PARTITION}_high_water_mark", "High watermark.", Level.PARTITION,
              [(at, end) for at, (_, end) in ends]),
        gauge(f"{_PARTITION}_low_water_mark", "Log start offset.", Level.PARTITION,
              [(at, start) for at, (start, _) in ends]),
    ]  # fmt: skip


def _sum(values: Sequence[int | None]) -> int | None:
    """None unless all are known: half of a sum would look like a value."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
