"""Metrics as tables: a metric is a column of a query's rows, and its labels are columns, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.serve.metrics.exposition import Family, Labels, Level, numbers
from streaming.serve.model import Snapshot

_LEVELS: Final = {
    "build": Level.CLUSTER,
    "rounds": Level.CLUSTER,
    "batches": Level.CLUSTER,
    "batch_phases": Level.CLUSTER,
    "alerts": Level.CLUSTER,
    "deliveries": Level.CLUSTER,
    "groups": Level.GROUP,
    "findings": Level.GROUP,
    "rebalances": Level.GROUP,
    "group_sums": Level.GROUP,
    "group_topics": Level.TOPIC,
    "topics": Level.TOPIC,
    "partitions": Level.PARTITION,
    "ends": Level.PARTITION,
}
"""What a metric can have a series for: rows of metric_<name>.sql, or what `_rows` makes of them."""

_SOURCES: Final = {"findings": "groups", "group_sums": "group_topics"}
"""Rows that are made of those of another name."""

_NO_COMMIT = "no_commit"
"""`lag.reason` of a partition without a committed offset."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: Its name.
        of: What it has a series for.
        column: Its value; a time is shown in seconds since the epoch. Without a value there is no series.
        help: What it means, in one line.
        since: The value is the time from this column to `column`, 0 at least; "" for `column` itself.
        more: Labels beside those of the mode, with the columns that they show.
        per_second: Units in a second, of a length of time.
    """

    name: str
    of: str
    column: str
    help: str
    since: str = ""
    more: Mapping[str, str] = field(default_factory=dict)
    per_second: int = 1


@dataclass(frozen=True, slots=True)
class Mode:
    """The metrics of an exporter.

    Attributes:
        labels: By what a series is for, its labels with the columns that they show; "" shows nothing.
        metrics: The metrics.
        without_commit: Value of a partition in which the group has committed nothing; None for what is known of it.
        shown: By what a series is for, a column that says whether a row is shown.
    """

    labels: Mapping[str, Mapping[str, str]]
    metrics: Sequence[Metric]
    without_commit: str | None = None
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Names of its labels."""
        more = (metric.more for metric in self.metrics)
        return {label for labels in (*self.labels.values(), *more) for label in labels}

    @property
    def needs_cluster(self) -> bool:
        """Whether its names have no label for the cluster."""
        return not any("cluster" in columns.values() for columns in self.labels.values())


def families(mode: Mode, snapshot: Snapshot, clusters: Collection[str], *, by_partition: bool = True) -> list[Family]:
    """The metrics of a mode.

    Args:
        mode: The mode.
        snapshot: The rows.
        clusters: Clusters that are shown.
        by_partition: Whether those of a group's partitions are wanted.
    """
    wanted = [metric for metric in mode.metrics if by_partition or metric.of != "partitions"]
    sources = {metric.of: _SOURCES.get(metric.of, metric.of) for metric in wanted if metric.of != "build"}
    known = snapshot.metrics.read(set(sources.values()))
    shown = pa.array(sorted(clusters), pa.string())
    found = {"build": _build()}
    for of, source in sources.items():
        rows = known[source]
        found[of] = _rows(of, rows.filter(pc.is_in(rows["cluster"], shown)))
        if of in mode.shown:
            found[of] = found[of].filter(found[of][mode.shown[of]])
    named = {of: _labels(mode.labels[of], rows) for of, rows in found.items() if of in mode.labels}
    return [_family(mode, metric, found[metric.of], named[metric.of]) for metric in wanted]


def _family(mode: Mode, metric: Metric, rows: pa.Table, named: Labels) -> Family:
    values = numbers(_values(metric, rows))
    if mode.without_commit is not None and metric.of == "partitions":
        is_without = pc.equal(rows["reason"], _NO_COMMIT).fill_null(False)
        values = pc.if_else(is_without, mode.without_commit, values)
    if metric.more:
        named = _labels({**mode.labels[metric.of], **metric.more}, rows)
    return Family(metric.name, metric.help, named, _whole(values), _LEVELS[metric.of])


def _build() -> pa.Table:
    return pa.table({"version": [version("evenkeel")], "up": [1]})


def _rows(of: str, rows: pa.Table) -> pa.Table:
    """The rows of what a metric has a series for, from those of its query."""
    if of == "findings":
        return _findings(rows)
    if of in {"group_topics", "group_sums"}:
        is_sum = pc.equal(rows["topic"], "")
        return rows.filter(is_sum if of == "group_sums" else pc.invert(is_sum))
    return rows


def _findings(groups: pa.Table) -> pa.Table:
    """One row per group and finding that holds now."""
    held = _whole(groups["findings"])
    of_group = groups.select(["cluster", "group_id"]).take(pc.list_parent_indices(held))
    found = of_group.append_column("finding", pc.struct_field(pc.list_flatten(held), "finding"))
    names = ["cluster", "group_id", "finding"]
    once = found.group_by(names).aggregate([]).sort_by([(name, "ascending") for name in names])
    return once.append_column("holds", pa.repeat(1, once.num_rows))


def _labels(labels: Mapping[str, str], rows: pa.Table) -> Labels:
    return Labels(lambda: {label: _texts(rows, column) for label, column in labels.items()}, rows.num_rows)


def _texts(rows: pa.Table, column: str) -> pa.Array:
    if column:
        return _whole(rows[column].cast(pa.string()))
    return pa.repeat("", rows.num_rows)


def _values(metric: Metric, rows: pa.Table) -> pa.ChunkedArray:
    column = rows[metric.column]
    if metric.since:
        passed = pc.max_element_wise(pc.subtract(_as_ms(column), _as_ms(rows[metric.since])), 0, skip_nulls=False)
        return pc.divide(pc.multiply(passed, metric.per_second).cast(pa.float64()), 1000.0)
    if pa.types.is_timestamp(column.type):
        return pc.divide(_as_ms(column).cast(pa.float64()), 1000.0)
    return column


def _as_ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks:
        return pa.concat_arrays(column.chunks)
    return pa.array([], column.type)
