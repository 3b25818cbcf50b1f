"""What a table is: columns with their meaning, a key, an order; its Delta properties, and its DDL for Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from streaming.tables.schema.types import Type

__all__ = ["PROPERTIES", "Column", "Table", "ddl"]

# An always-on job commits up to 8,640 times a day and table. The defaults (30 days of log, a checkpoint every 10
# commits) would keep a quarter of a million log files; a week lets a reader look back, and a checkpoint every 50
# commits costs a reader 50 small files at the most.
PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.checkpointInterval": "50",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, type, and what it means, with unit and the meaning of NULL."""

    name: str
    type: Type
    comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        name: Name, and folder in the lake.
        comment: One row per what.
        columns: Columns in order.
        key: Columns that name what a row speaks of.
        newest_by: Columns that order the rows of one key, the last is the newest.
        closes: A row with `closed` ends its key.
        partition_by: Partition columns.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    newest_by: tuple[str, ...]
    closes: bool = False
    partition_by: tuple[str, ...] = ("event_date",)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The table's Arrow schema; comments are field metadata, as delta-rs writes them into the log."""
        return pa.schema([pa.field(c.name, c.type.arrow, metadata={"comment": c.comment}) for c in self.columns])


def ddl(table: Table, location: str) -> str:
    """Spark SQL that creates the table at a location, the same as `create` does without Spark."""
    quoted = location.replace("`", "``")
    columns = ",\n  ".join(f"`{c.name}` {c.type.sql} COMMENT {_literal(c.comment)}" for c in table.columns)
    partitioned = f"\nPARTITIONED BY ({', '.join(table.partition_by)})" if table.partition_by else ""
    properties = ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in PROPERTIES.items())
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{quoted}` (\n  {columns}\n)\nUSING delta{partitioned}\n"
        f"COMMENT {_literal(table.comment)}\nTBLPROPERTIES ({properties})"
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
