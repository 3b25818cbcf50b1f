"""Metrics as tables: a metric is a column of a query's rows, and its labels are columns, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.serve.metrics.exposition import Family, Labels, Level, sample
from streaming.serve.model import Snapshot

_LEVELS: Final = {
    "build": Level.CLUSTER,
    "rounds": Level.CLUSTER,
    "alerts": Level.CLUSTER,
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
    without_commit: float | None = None
    shown: Mapping[str, str] = field(default_factory=dict)

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
    known = Labels()
    found = {}
    for of in {metric.of for metric in wanted}:
        rows = _rows(snapshot, of, clusters)
        if of in mode.shown:
            rows = rows.filter(rows[mode.shown[of]])
        found[of] = rows, _labels(mode.labels[of], rows, known)
    return [_family(mode, metric, *found[metric.of], known) for metric in wanted]


def _family(mode: Mode, metric: Metric, rows: pa.Table, named: Sequence[str], known: Labels) -> Family:
    values = _values(metric, rows)
    if mode.without_commit is not None and metric.of == "partitions":
        reasons = rows["reason"].to_pylist()
        values = [
            mode.without_commit if why == _NO_COMMIT else value for value, why in zip(values, reasons, strict=True)
        ]
    if metric.more:
        named = [f"{at},{more}" for at, more in zip(named, _labels(metric.more, rows, known), strict=True)]
    samples = [sample(at, value) for at, value in zip(named, values, strict=True) if value is not None]
    return Family(metric.name, "gauge", metric.help, samples, _LEVELS[metric.of])


def _rows(snapshot: Snapshot, of: str, clusters: Collection[str]) -> pa.Table:
    if of == "build":
        return pa.table({"version": [version("evenkeel")], "up": [1]})
    source = {"findings": "groups", "group_sums": "group_topics"}.get(of, of)
    rows = snapshot.metrics[source]
    rows = rows.filter(pc.is_in(rows["cluster"], pa.array(sorted(clusters), pa.string())))
    if source == "group_topics":
        is_sum = pc.equal(rows["topic"], "")
        return rows.filter(is_sum if of == "group_sums" else pc.invert(is_sum))
    return rows if of != "findings" else _findings(rows)


def _findings(groups: pa.Table) -> pa.Table:
    """One row per group and finding that holds now."""
    found = [
        (cluster, group, name, 1)
        for cluster, group, held in zip(
            *(groups[c].to_pylist() for c in ("cluster", "group_id", "findings")), strict=True
        )
        for name in sorted({finding["finding"] for finding in held or ()})
    ]
    names = ("cluster", "group_id", "finding", "holds")
    return pa.table({name: [row[place] for row in found] for place, name in enumerate(names)})


def _labels(labels: Mapping[str, str], rows: pa.Table, known: Labels) -> list[str]:
    """Each row's labels as they are written."""
    columns = [[f'{label}="{known[text]}"' for text in _texts(rows, column)] for label, column in labels.items()]
    return [",".join(parts) for parts in zip(*columns, strict=True)]


def _texts(rows: pa.Table, column: str) -> list[str | None]:
    if not column:
        return [None] * rows.num_rows
    texts: list[str | None] = rows[column].cast(pa.string()).to_pylist()
    return texts


def _values(metric: Metric, rows: pa.Table) -> list[Any]:
    column = rows[metric.column]
    if metric.since:
        passed = pc.max_element_wise(pc.subtract(_ms(column), _ms(rows[metric.since])), 0, skip_nulls=False)
        column = pc.divide(pc.multiply(passed, metric.per_second).cast(pa.float64()), 1000.0)
    elif pa.types.is_timestamp(column.type):
        column = pc.divide(_ms(column).cast(pa.float64()), 1000.0)
    values: list[Any] = column.to_pylist()
    return values


def _ms(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
