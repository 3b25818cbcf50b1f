"""DDL of the tables for Spark SQL, and the Delta properties that they have."""

from __future__ import annotations

from typing import Final

from streaming.tables.schema.table import Table

__all__ = ["PROPERTIES", "ddl"]

# An always-on job commits up to 8,640 times a day and table. The defaults (30 days of log, a checkpoint every 10
# commits) would keep a quarter of a million log files; a week lets a reader look back, and a checkpoint every 50
# commits costs a reader 50 small files at the most.
PROPERTIES: Final = {
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.checkpointInterval": "50",
}


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
