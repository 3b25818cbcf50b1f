"""The tables: their schema, the one way to append to them, the views of the present."""

from __future__ import annotations

from streaming.tables.cache import TableCache, Wanted, reach_of, reach_of_living
from streaming.tables.data_file import (
    DAY,
    LakeUnreadableError,
    LakeUnwritableError,
    advice,
    file_sized,
    file_system,
    has_lost,
    new_files,
    note_lost,
    rows_of,
)
from streaming.tables.known import KnownRows
from streaming.tables.lake import (
    DeltaLake,
    Lake,
    alerter_place,
    append_created,
    append_once,
    named_to_arrow,
    patiently,
    to_arrow,
    widened,
)
from streaming.tables.log_tail import RETENTION_COMMIT, DeltaLogTail
from streaming.tables.memory import computed, fetched_few, in_memory, limited
from streaming.tables.opened import DataFile, OpenedTable
from streaming.tables.read import VIEWS, LakeReader, current_sql
from streaming.tables.schema import (
    ADVICE_TABLES,
    ALERT_TABLES,
    ALL_TABLES,
    FLEET_TABLES,
    HEARTBEAT,
    HISTORY_TABLES,
    ITSELF_TABLES,
    NOTE_TABLES,
    TABLES,
    Table,
    table_named,
)
from streaming.tables.sql import SqlError, nodes_of, parsed, reads, with_parameters

__all__ = [
    "ADVICE_TABLES",
    "ALERT_TABLES",
    "ALL_TABLES",
    "DAY",
    "FLEET_TABLES",
    "HEARTBEAT",
    "HISTORY_TABLES",
    "ITSELF_TABLES",
    "NOTE_TABLES",
    "RETENTION_COMMIT",
    "TABLES",
    "VIEWS",
    "DataFile",
    "DeltaLake",
    "DeltaLogTail",
    "KnownRows",
    "Lake",
    "LakeReader",
    "LakeUnreadableError",
    "LakeUnwritableError",
    "OpenedTable",
    "SqlError",
    "Table",
    "TableCache",
    "Wanted",
    "advice",
    "alerter_place",
    "append_created",
    "append_once",
    "computed",
    "current_sql",
    "fetched_few",
    "file_sized",
    "file_system",
    "has_lost",
    "in_memory",
    "limited",
    "named_to_arrow",
    "new_files",
    "nodes_of",
    "note_lost",
    "parsed",
    "patiently",
    "reach_of",
    "reach_of_living",
    "reads",
    "rows_of",
    "table_named",
    "to_arrow",
    "widened",
    "with_parameters",
]
