"""Rows of a snapshot as the metrics walk them: by column, without clusters that are silent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from streaming.serve.metrics.exposition import Labels
from streaming.serve.model import Cluster, Snapshot


@dataclass(frozen=True, slots=True)
class Scope:
    """What one rendering shows.

    Attributes:
        snapshot: The rows.
        clusters: The clusters that it shows and that are not silent, by name.
        labels: Label values, written.
    """

    snapshot: Snapshot
    clusters: dict[str, Cluster]
    labels: Labels = field(default_factory=Labels)


class MetricPartition(NamedTuple):
    """A row of metric_partitions.sql; times in ms since the epoch."""

    cluster: str
    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    high_watermark: int | None
    log_start_offset: int | None
    lag: int | None
    reason: str | None
    subscribed: bool | None
    member_id: str | None
    client_id: str | None
    client_host: str | None
    oldest_unread_time_min: int | None
    oldest_unread_time_max: int | None
    oldest_unread_reason: str | None
    round: int

    def behind_s(self, cluster: Cluster) -> tuple[float | None, float | None]:
        """For how long its oldest unread record has been readable at the newest round: at least, at most; in s."""
        if self.oldest_unread_reason == "nothing_unread":
            return 0.0, 0.0
        low, high = self.oldest_unread_time_max, self.oldest_unread_time_min
        return (
            None if low is None else max(0.0, (cluster.round_ms - low) / 1000),
            None if high is None else max(0.0, (cluster.round_ms - high) / 1000),
        )


def partitions(scope: Scope) -> Iterator[MetricPartition]:
    """Partitions by cluster, group, topic and number."""
    table = scope.snapshot.partitions
    for row in zip(*(_values(table[name]) for name in MetricPartition._fields), strict=True):
        if row[0] in scope.clusters:
            yield MetricPartition(*row)


def rows(scope: Scope, table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows of any table that has a cluster."""
    for row in table.to_pylist():
        if row["cluster"] in scope.clusters:
            yield row


def _values(column: pa.ChunkedArray) -> list[Any]:
    # A datetime for each row would take most of the time.
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
