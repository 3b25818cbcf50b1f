"""Our own metrics, `evenkeel_*`. docs/metrics.md has the table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from streaming.serve.metrics.exposition import Family, Labels, Level, sample
from streaming.serve.metrics.rows import MetricPartition, Scope, partitions, rows

# Column of metric_groups.sql, name behind `evenkeel_group_`, meaning.
_OF_GROUPS = (
    ("lag_total", "lag_offsets", "Offsets that the group has still to read, in partitions with a known lag."),
    ("lag_max", "lag_max_offsets", "Largest lag of one partition."),
    ("lag_unknown", "lag_unknown_partitions", "Partitions whose lag is not known."),
    ("partitions", "partitions", "Partitions of the topics that the group subscribes to."),
    ("assigned_partitions", "assigned_partitions", "Partitions that a member owns."),
    ("members", "members", "Members of the group."),
    ("idle_members", "idle_members", "Members that own nothing."),
    ("drifted_count", "drifted_partitions", "Partitions of the newest decision without the expected owner."),
    ("strategy_mismatch", "strategy_mismatch", "1 if the group runs another strategy than the settings expect."),
    ("imbalance", "imbalance_ratio", "Most partitions of a member, over the mean, minus 1."),
    ("imbalance_optimal", "imbalance_optimal_ratio", "The least imbalance that any assignment could have."),
)

# Column, which is the label's name as well, name, meaning.
_OF_STATES = (
    ("verdict", "verdict", "1 for the verdict on the newest decision."),
    ("state", "state", "1 for the coordinator's state of the group."),
    ("lag_status", "lag_status", "1 for the worst status of a partition's lag."),
)


def families(scope: Scope, *, by_partition: bool) -> list[Family]:
    """All of them.

    Args:
        scope: What to show.
        by_partition: Whether metrics of partitions are wanted.
    """
    return [*_clusters(scope), *_groups(scope), *_moves(scope), *_topics(scope, by_partition=by_partition)]


def _clusters(scope: Scope) -> Iterable[Family]:
    snapshot, labels = scope.snapshot, scope.labels

    def family(name: str, told: str, values: dict[str, float | None]) -> Family:
        found = [sample(f'cluster="{labels[c]}"', v) for c, v in values.items() if v is not None]
        return Family(name, "gauge", told, found, Level.CLUSTER)

    of = scope.clusters.items()
    yield family("evenkeel_cluster_groups", "Groups in the newest round.", {c: r.groups for c, r in of})
    yield family(
        "evenkeel_round_interval_seconds",
        "Time between two rounds of the probe.",
        {c: None if r.interval_ms is None else r.interval_ms / 1000 for c, r in of},
    )
    yield family(
        "evenkeel_round_timestamp_seconds",
        "When the newest round was opened, by the broker's clock.",
        {c: r.round_ms / 1000 for c, r in of},
    )
    yield family(
        "evenkeel_held_log_partitions",
        "Partitions of the offsets log that open transactions block: the lag of their groups is not known.",
        {c: r.held_partitions for c, r in of},
    )
    yield family(
        "evenkeel_undecoded_records",
        "Records that could not be decoded, as far as the lake holds them (table quarantine).",
        {c: snapshot.unseen.get((c, "quarantine"), 0) for c in scope.clusters},
    )
    yield family(
        "evenkeel_gaps",
        "Ranges deleted before we read them, as far as the lake holds them (table gaps).",
        {c: snapshot.unseen.get((c, "gap"), 0) for c in scope.clusters},
    )
    firing = [
        sample(f'cluster="{labels[c]}",rule="{labels[rule]}",severity="{labels[severity]}"', n)
        for (c, rule, severity), n in snapshot.alerts.items()
        if c in scope.clusters
    ]
    yield Family("evenkeel_alerts_firing", "gauge", "Alerts of Evenkeel's own that fire.", firing, Level.CLUSTER)


def _groups(scope: Scope) -> Iterable[Family]:
    found = [(_group(scope.labels, row), row) for row in rows(scope, scope.snapshot.groups)]
    for column, name, told in _OF_GROUPS:
        values = [sample(at, row[column]) for at, row in found if row[column] is not None]
        yield Family(f"evenkeel_group_{name}", "gauge", told, values)
    for column, name, told in _OF_STATES:
        states = [sample(f'{at},{column}="{scope.labels[row[column]]}"', 1) for at, row in found if row[column]]
        yield Family(f"evenkeel_group_{name}", "gauge", told, states)
    findings = [
        sample(f'{at},finding="{scope.labels[name]}"', 1)
        for at, row in found
        for name in sorted({finding["finding"] for finding in row["findings"] or ()})
    ]
    yield Family("evenkeel_group_finding", "gauge", "1 for each finding that holds now.", findings)
    decided = [
        sample(at, row["last_decision_time"].timestamp()) for at, row in found if row["last_decision_time"] is not None
    ]
    yield Family(
        "evenkeel_group_last_decision_timestamp_seconds", "gauge", "When the newest decision was recorded.", decided
    )
    behind = [(at, *_behind_s(scope, row)) for at, row in found]
    yield Family(
        "evenkeel_group_time_behind_min_seconds",
        "gauge",
        "The group's oldest unread record had been readable for at least so long at the newest round.",
        [sample(at, low) for at, low, _ in behind if low is not None],
    )
    yield Family(
        "evenkeel_group_time_behind_max_seconds",
        "gauge",
        "And for no longer than this; absent where no upper bound is known.",
        [sample(at, high) for at, _, high in behind if high is not None],
    )


def _behind_s(scope: Scope, row: dict[str, Any]) -> tuple[float | None, float | None]:
    """The bounds of a group's row at the newest round: between rows they grow, unless the group keeps up."""
    low, high = row["time_behind_seconds_min"], row["time_behind_seconds_max"]
    passed = 0.0
    if row["time_behind_topic"] is not None or row["time_behind_reason"] is not None:
        passed = max(0.0, scope.clusters[row["cluster"]].round_ms / 1000 - row["round_time"].timestamp())
    return None if low is None else low + passed, None if high is None else high + passed


def _moves(scope: Scope) -> Iterable[Family]:
    if scope.snapshot.rebalances is None:
        return
    found = [(_group(scope.labels, row), row) for row in rows(scope, scope.snapshot.rebalances)]
    yield Family(
        "evenkeel_group_rebalances_last_hour",
        "gauge",
        "Rebalances in the hour before the newest round; absent without any.",
        [sample(at, row["rebalances"]) for at, row in found],
    )
    yield Family(
        "evenkeel_group_partitions_moved_last_hour",
        "gauge",
        "Partitions that these rebalances moved from one owner to another, where that is known.",
        [sample(at, row["partitions_moved"]) for at, row in found if row["partitions_moved"] is not None],
    )


def _topics(scope: Scope, *, by_partition: bool) -> Iterable[Family]:
    lags: list[str] = []
    unknown: list[str] = []
    behind: list[str] = []
    of_partitions: dict[str, list[str]] = {"lag": [], "committed": [], "end": [], "low": [], "high": []}
    subscribed = (row for row in partitions(scope) if row.subscribed is not False)
    for (cluster, group, topic), of_topic in groupby(subscribed, lambda row: row[:3]):
        found = list(of_topic)
        at = f'{_group(scope.labels, {"cluster": cluster, "group_id": group})},topic="{scope.labels[topic]}"'
        known = [row.lag for row in found if row.lag is not None]
        if known:
            lags.append(sample(at, sum(known)))
        unknown.append(sample(at, len(found) - len(known)))
        bounds = [row.behind_s(scope.clusters[cluster]) for row in found]
        low = [bound for bound, _ in bounds if bound is not None]
        if low:
            behind.append(sample(at, max(low)))
        if by_partition:
            _partitions(of_partitions, at, found, bounds)
    yield Family(
        "evenkeel_group_topic_lag_offsets",
        "gauge",
        "The group's lag in one topic, in partitions with a known lag.",
        lags,
        Level.TOPIC,
    )
    yield Family(
        "evenkeel_group_topic_lag_unknown_partitions",
        "gauge",
        "Partitions of the topic whose lag is not known.",
        unknown,
        Level.TOPIC,
    )
    yield Family(
        "evenkeel_group_topic_time_behind_min_seconds",
        "gauge",
        "The oldest unread record of the topic had been readable for at least so long at the newest round.",
        behind,
        Level.TOPIC,
    )
    for column, name, told in (
        ("lag", "evenkeel_partition_lag_offsets", "The group's lag in one partition."),
        ("low", "evenkeel_partition_time_behind_min_seconds", "Lower bound of how far the group is behind in time."),
        ("high", "evenkeel_partition_time_behind_max_seconds", "Upper bound of the same."),
        ("committed", "evenkeel_partition_committed_offset", "Last committed offset."),
        ("end", "evenkeel_partition_high_watermark", "High watermark, as the group's row saw it."),
    ):
        yield Family(name, "gauge", told, of_partitions[column], Level.PARTITION)


def _partitions(
    into: dict[str, list[str]],
    at: str,
    found: list[MetricPartition],
    bounds: list[tuple[float | None, float | None]],
) -> None:
    for row, (low, high) in zip(found, bounds, strict=True):
        here = f'{at},partition="{row.partition}"'
        values = (
            ("lag", row.lag),
            ("committed", row.committed_offset),
            ("end", row.high_watermark),
            ("low", low),
            ("high", high),
        )
        for column, value in values:
            if value is not None:
                into[column].append(sample(here, value))


def _group(labels: Labels, row: dict[str, Any]) -> str:
    return f'cluster="{labels[row["cluster"]]}",group="{labels[row["group_id"]]}"'
