"""The tables: every column with its type and its meaning, in one place.

From here come the Delta tables (`create`), the Arrow schemas of the writer, the types for Spark SQL, and the names
that the rows of the core have. All columns may be NULL in Delta's eyes, because a constraint would fail a batch
for ever; what NULL means stands in the comment.

The names and their order stand a second time in the row classes of the core (`streaming.groups.rows`), which a type
checker reads. Neither can be made from the other: a class says `int` where a column says INT, BIGINT, DATE or
TIMESTAMP, and the core loads no Arrow. A test holds both together, in names, order and types, also inside of structs.
"""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.alerting import ALERT_DELIVERIES, ALERTS, MARKS, MUTES
from streaming.tables.schema.cluster import BATCHES, CLUSTERS, GAPS, QUARANTINE, TOPICS
from streaming.tables.schema.decisions import DRIFT, MEMBERS, REBALANCE_CHURN, WHAT_IF
from streaming.tables.schema.maintained import ADVICE, ADVICE_DAYS, GROUP_DAILY, GROUP_HOURLY, PARTITION_HOURLY
from streaming.tables.schema.rounds import GROUP_HEALTH, LAG, MEMBER_LOAD, OPEN_TRANSACTIONS, ROUNDS
from streaming.tables.schema.table import DAILY, HEARTBEAT, Column, Table

__all__ = [
    "ADVICE_TABLES",
    "ALERT_TABLES",
    "ALL_TABLES",
    "DAILY",
    "FLEET_TABLES",
    "HEARTBEAT",
    "HISTORY_TABLES",
    "ITSELF_TABLES",
    "NOTE_TABLES",
    "TABLES",
    "Column",
    "Table",
    "table_named",
]

TABLES: Final = (
    REBALANCE_CHURN,
    DRIFT,
    WHAT_IF,
    LAG,
    GROUP_HEALTH,
    MEMBERS,
    QUARANTINE,
    GAPS,
    OPEN_TRANSACTIONS,
    MEMBER_LOAD,
    TOPICS,
    ROUNDS,
)
"""All tables that the job writes, in the order in which a batch writes them.

`rounds` is last: once a round is there, everything of it is.
"""

ALERT_TABLES: Final = (ALERTS, ALERT_DELIVERIES)
"""The tables that the alerter writes; those of the job are `TABLES`."""

HISTORY_TABLES: Final = (PARTITION_HOURLY, GROUP_HOURLY, GROUP_DAILY)
"""The tables that the maintenance fills, in the order in which it writes an hour.

`group_hourly` comes after `partition_hourly`: once an hour is there, everything of it is.
"""

ADVICE_TABLES: Final = (ADVICE, ADVICE_DAYS)
"""The tables that the maintenance fills from history and decisions, in the order in which it writes a day.

`advice_days` comes after `advice`: once a day is there, everything of it is.
"""

FLEET_TABLES: Final = (CLUSTERS,)
"""The tables that a process writes when clusters begin and end to be watched (`streaming.catalog.fleet_log`)."""

NOTE_TABLES: Final = (MUTES, MARKS)
"""The tables that people write, by commands and by the API; the alerter creates them as well."""

ITSELF_TABLES: Final = (BATCHES,)
"""The tables that the job writes about itself, beside its batches: they are no rows of the core."""

ALL_TABLES: Final = (
    *TABLES,
    *ALERT_TABLES,
    *HISTORY_TABLES,
    *ADVICE_TABLES,
    *NOTE_TABLES,
    *FLEET_TABLES,
    *ITSELF_TABLES,
)
"""Every table of a lake."""

_BY_NAME = {table.name: table for table in ALL_TABLES}


def table_named(name: str) -> Table:
    """The table of that name.

    Raises:
        KeyError: There is none.
    """
    return _BY_NAME[name]
