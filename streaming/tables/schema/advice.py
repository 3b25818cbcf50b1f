"""Advice: what a person could change in a group, by day, with the figures that it rests on.

The maintenance fills these tables when a day has its history (`streaming.advice`). A day that gets late rows is computed
once more, and its rows are replaced.
"""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import (
    BOOLEAN,
    CLUSTER,
    DATE,
    DOUBLE,
    GROUP,
    INT,
    LABELS,
    LONG,
    STRING,
    Column,
    Table,
)

_DAY: Final = Column("event_date", DATE, "The day, UTC, the last of the period looked at; partitions the table")
_DEFINITION: Final = Column("definition", INT, "Version of the rules by which the row was computed")

ADVICE: Final = Table(
    "advice",
    "One row per group, kind of advice and day at whose end it holds, and a closing row on the first day at whose end it no longer does",
    (
        CLUSTER,
        GROUP,
        Column(
            "kind",
            STRING,
            "static_membership, session_timeout, cooperative, strategy, too_many_members, hot_partition, kip848, offsets_expire, declare_clients, abandoned (advice.md)",
        ),
        _DAY,
        Column("ended", BOOLEAN, "It no longer holds; the row has the figures of the last day on which it did"),
        Column("since", DATE, "First day at whose end it has held without a break"),
        _DEFINITION,
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
)

ADVICE_DAYS: Final = Table(
    "advice_days",
    "One row per cluster and day that was looked at for advice, also where none was found",
    (
        CLUSTER,
        _DAY,
        _DEFINITION,
        Column("first_day", DATE, "First day of the period that has figures"),
        Column("period_days", INT, "Days of the period that have figures; at most seven"),
        Column("groups", INT, "Groups that were looked at"),
        Column("advices", INT, "Advice that holds at the end of the day"),
        Column(
            "source_rows", LONG, "Sum of group_daily.source_rows of the period; another sum has the day computed again"
        ),
        Column(
            "carried", LONG, "A sum over the advice of the day before, which has the day computed again when it differs"
        ),
    ),
    key=("cluster",),
    newest_by=("event_date",),
    keep_days=400,
    time="event_date",
)
