"""What a table is: columns with their meaning, a key, an order."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streaming.tables.schema.types import Type

__all__ = ["Column", "Table"]


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
