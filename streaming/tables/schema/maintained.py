"""History and advice: what the tables said, by hour and day, kept for years; and what a person could change in a group.

The maintenance fills these tables from closed hours and days (`streaming.history`, `streaming.advice`). Each key has one
row; an hour or day that gets late rows is computed once more, and its rows are replaced.
"""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BOOLEAN,
    BROKER,
    CLUSTER,
    DATE,
    DOUBLE,
    GROUP,
    INT,
    LABELS,
    LONG,
    STRING,
    TIMESTAMP,
    Column,
    Table,
    structs,
)

SECONDS_BY_NAME: Final = structs(name=STRING, seconds=DOUBLE)

COUNT_BY_NAME: Final = structs(name=STRING, count=LONG)

HOUR: Final = Column("hour", TIMESTAMP, "Beginning of the hour, UTC")
HOUR_DATE: Final = Column("event_date", DATE, "Day of hour, UTC; partitions the table")
DEFINITION: Final = Column("definition", INT, "Version of the definitions by which the row was computed")

_MEANS = "weighted by time"

_OF_A_GROUP: Final = (
    DEFINITION,
    Column(
        "source_rows",
        LONG,
        "Rows of group_health, rebalance_churn and drift in the span; more of them have it computed again",
    ),
    Column("observed_seconds", DOUBLE, "Time between rounds in which the group existed"),
    Column("lag_total_max", LONG, "Highest lag_total; NULL when it was never known"),
    Column("lag_total_mean", DOUBLE, f"Mean of lag_total, {_MEANS}; NULL when it was known for no time"),
    Column("lag_known_seconds", DOUBLE, "Time in which lag_total was known"),
    Column("lag_max", LONG, "Highest lag of one partition; NULL when none was ever known"),
    Column("lost_records_max", LONG, "Highest lost_records; NULL when it was never known"),
    Column("commits", LONG, "Offset commits, by the rows that report them; NULL for groups whose log is not read"),
    Column("lag_status_seconds", SECONDS_BY_NAME, "Time by lag_status, the group's worst"),
    Column("state_seconds", SECONDS_BY_NAME, "Time by the coordinator's state"),
    Column("verdict_seconds", SECONDS_BY_NAME, "Time by the verdict in force"),
    Column("drifted_seconds", DOUBLE, "Time in which the decision in force had drifted"),
    Column("finding_seconds", SECONDS_BY_NAME, "Time by finding; several can hold at once"),
    Column("drifted_count_max", INT, "Most drifted partitions of a decision in force; NULL without a verdict"),
    Column("members_min", INT, "Fewest members; NULL when their number was never known"),
    Column("members_max", INT, "Most members"),
    Column("members_mean", DOUBLE, f"Mean number of members, {_MEANS}; NULL when it was known for no time"),
    Column("members_known_seconds", DOUBLE, "Time in which the number of members was known"),
    Column("imbalance_max", DOUBLE, "Highest imbalance; NULL when nothing was assigned"),
    Column("imbalance_mean", DOUBLE, f"Mean imbalance, {_MEANS}; NULL when it was known for no time"),
    Column("imbalance_optimal_mean", DOUBLE, "Mean of imbalance_optimal over the same time"),
    Column("imbalance_known_seconds", DOUBLE, "Time in which both were known"),
    Column("decisions", INT, "Decisions, of every kind"),
    Column("rebalances", INT, "Decisions of kind rebalance"),
    Column("generations_skipped", LONG, "Sum of generations_skipped where it is known"),
    Column("decisions_identical", INT, "Decisions with the verdict identical"),
    Column("decisions_drifted", INT, "Decisions with the verdict drifted"),
    Column("decisions_unverified", INT, "Decisions with the verdict unverified"),
    Column("partitions_moved", LONG, "Sum of partitions_moved where it is known"),
    Column("partitions_moved_unknown", INT, "Decisions whose partitions_moved is NULL"),
    Column("partitions_moved_comparable", LONG, "Sum of partitions_moved of decisions whose partitions_moved_optimal is known"),
    Column("partitions_moved_optimal", LONG, "Sum of partitions_moved_optimal of the same decisions"),
    Column("unassigned_partition_seconds_min", DOUBLE, "Sum of unassigned_partition_seconds_min: a lower bound"),
    Column(
        "unassigned_partition_seconds_max",
        DOUBLE,
        "Sum of unassigned_partition_seconds_max; NULL when that of one decision has no bound",
    ),
    Column(
        "rebalances_by_protocol",
        COUNT_BY_NAME,
        "Rebalances by rebalance_protocol, where it is known",
    ),
    Column(
        "rebalances_by_cause",
        COUNT_BY_NAME,
        "Rebalances by cause; one with several counts for each",
    ),
    Column(
        "partitions_stopped_unmoved",
        LONG,
        "Sum of partitions_stopped_unmoved where it is known",
    ),
    Column("partitions_stopped_unmoved_unknown", INT, "Rebalances of which it is NULL"),
    Column(
        "members_beyond_partitions_seconds",
        DOUBLE,
        "Time in which the group had more members than partitions",
    ),
    Column("members_beyond_partitions_max", INT, "Most such members; 0 for none"),
)  # fmt: skip

GROUP_HOURLY: Final = Table(
    "group_hourly",
    "One row per group and closed hour in which it was observed or decided",
    (CLUSTER, GROUP, HOUR, HOUR_DATE, *_OF_A_GROUP),
    key=("cluster", "group_id", "hour"),
    newest_by=(),
    keep_days=1_100,
    time="hour",
)

GROUP_DAILY: Final = Table(
    "group_daily",
    "One row per group and closed day, computed from group_hourly",
    (CLUSTER, GROUP, Column("event_date", DATE, "The day, UTC; partitions the table"), *_OF_A_GROUP),
    key=("cluster", "group_id", "event_date"),
    newest_by=(),
    keep_days=1_100,
    time="event_date",
)

PARTITION_HOURLY: Final = Table(
    "partition_hourly",
    "One row per partition of a group and closed hour in which something happened: offsets moved, records waited, or its lag was unknown",
    (
        CLUSTER,
        GROUP,
        Column("topic", STRING, "Topic"),
        BROKER,
        Column("partition", INT, "Partition"),
        HOUR,
        HOUR_DATE,
        DEFINITION,
        Column("observed_seconds", DOUBLE, "Time between rounds in which the partition was watched"),
        Column("lag_max", LONG, "Highest lag; NULL when it was never known"),
        Column("lag_mean", DOUBLE, f"Mean lag, {_MEANS}; NULL when it was known for no time"),
        Column("lag_known_seconds", DOUBLE, "Time in which the lag was known"),
        Column("lost_records_max", LONG, "Highest lost_records; NULL when it was never known"),
        Column("commits", LONG, "Offset commits, by the rows that report them; NULL for groups whose log is not read"),
        Column("committed_offset_growth", LONG, "By how much committed_offset grew, steps back left out; NULL when not known"),
        Column("high_watermark_growth", LONG, "By how much high_watermark grew, steps back left out; NULL when not known"),
        Column("rewound_by_max", LONG, "Largest step backwards between commits; 0 for none"),
        Column("lag_status_seconds", SECONDS_BY_NAME, "Time by lag_status; times of 0 are left out"),
    ),
    key=("cluster", "group_id", "topic", "broker", "partition", "hour"),
    newest_by=(),
    keep_days=400,
    time="hour",
)  # fmt: skip

_DAY: Final = Column("event_date", DATE, "The day, UTC, the last of the period looked at; partitions the table")

ADVICE: Final = Table(
    "advice",
    "One row per group, kind of advice and day at whose end it holds, and a closing row on the first day at whose end it does not",
    (
        CLUSTER,
        GROUP,
        Column(
            "kind",
            STRING,
            "static_membership, cooperative, strategy, too_many_members, hot_partition, offsets_expire, declare_clients, abandoned (advice.md)",
        ),
        _DAY,
        Column("ended", BOOLEAN, "It no longer holds; the row has the figures of the last day on which it did"),
        Column("since", DATE, "First day at whose end it has held without a break"),
        Column("period_days", INT, "Days of the period that have figures; at most seven"),
        Column("events", LONG, "Rebalances, decisions, hours or days that it rests on; which, says the evidence"),
        Column(
            "saved", DOUBLE, "What following it would have saved in the period, in unit; NULL where nobody can tell"
        ),
        Column("unit", STRING, "Unit of saved; NULL without it"),
        Column("advice", STRING, "What to do"),
        Column("evidence", STRING, "Why, with the arithmetic"),
        Column("cost", STRING, "What it costs, and what to check before"),
        Column("details", LABELS, "The figures of the evidence by name, as text"),
    ),
    key=("cluster", "group_id", "kind"),
    newest_by=("event_date",),
    keep_days=400,
    time="event_date",
    closes=True,
    with_cluster=True,
)

ADVICE_DAYS: Final = Table(
    "advice_days",
    "One row per cluster and day that was looked at for advice, also where none was found",
    (
        CLUSTER,
        _DAY,
        Column("first_day", DATE, "First day of the period that has figures"),
        Column("period_days", INT, "Days of the period that have figures; at most seven"),
        Column("groups", INT, "Groups that were looked at"),
        Column("advices", INT, "Advice that holds at the end of the day"),
    ),
    key=("cluster",),
    newest_by=("event_date",),
    keep_days=400,
    time="event_date",
    with_cluster=True,
)
