"""What the modes of other exporters share: sums by topic, partitions of topics, as those exporters define them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from streaming.serve.metrics.exposition import Family, Level, sample
from streaming.serve.metrics.rows import MetricPartition, Scope, partitions, rows

OffsetBounds = tuple[int | None, int | None]
"""Log start offset and high watermark of a partition; None where it is not known."""

NO_COMMIT = "no_commit"
"""`lag.reason` of a partition without a committed offset."""


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """One topic of one group.

    Attributes:
        cluster: Name of the cluster.
        group: Group id.
        topic: Topic.
        partitions: Its partitions, by number.
    """

    cluster: str
    group: str
    topic: str
    partitions: list[MetricPartition]

    @property
    def lag(self) -> int | None:
        """Sum of what is known; None when nothing is."""
        known = [row.lag for row in self.partitions if row.lag is not None]
        return sum(known) if known else None

    @property
    def committed(self) -> int | None:
        """Sum of the committed offsets; None when there is none."""
        known = [row.committed_offset for row in self.partitions if row.committed_offset is not None]
        return sum(known) if known else None


def group_topics(scope: Scope) -> Iterator[GroupTopic]:
    """By cluster, group and topic, with topics that the group has left: other exporters know no subscription."""
    for (cluster, group, topic), of_topic in groupby(partitions(scope), lambda row: row[:3]):
        yield GroupTopic(cluster, group, topic, list(of_topic))


def topic_partitions(found: Iterable[GroupTopic]) -> dict[tuple[str, str, int], OffsetBounds]:
    """Log start offset and high watermark by cluster, topic and partition: of the newest row of any group."""
    newest: dict[tuple[str, str, int], MetricPartition] = {}
    for one in found:
        for row in one.partitions:
            key = (row.cluster, row.topic, row.partition)
            known = newest.get(key)
            if known is None or row.round > known.round:
                newest[key] = row
    return {key: (row.log_start_offset, row.high_watermark) for key, row in sorted(newest.items())}


def whole_topics(
    scope: Scope, found: Sequence[GroupTopic], ends: Mapping[tuple[str, str, int], OffsetBounds]
) -> dict[tuple[str, str], list[OffsetBounds]]:
    """The bounds of every partition, by cluster and topic, of topics of which no partition can be missing.

    Those are the topics to which a group with members subscribes: it has a row for each partition of them, as many as
    its own row counts. For a topic that is only committed to, the tables have the partitions with commits.

    Args:
        scope: What is shown.
        found: All of `group_topics`.
        ends: Their `topic_partitions`.
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
    bounds: dict[tuple[str, str], list[OffsetBounds]] = {}
    for (cluster, topic, _), of_partition in ends.items():
        if (cluster, topic) in topics:
            bounds.setdefault((cluster, topic), []).append(of_partition)
    return bounds


def gauge(name: str, told: str, level: Level, values: Iterable[tuple[str, float | None]]) -> Family:
    """A gauge from labels and values; values that are not known are left out."""
    return Family(name, "gauge", told, [sample(at, value) for at, value in values if value is not None], level)
