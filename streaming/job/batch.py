"""What happens to the rows of a batch: unpacked, sorted by table, appended once.

The rows are collected in one action, which runs the operator once and makes every state partition commit
(spark_delta.md, findings 4 and 5); all tables then come out of the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from streaming.groups.facts import Rows
from streaming.tables import TABLES, Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["batch_writer", "rows_by_table"]

# Untyped: the rows go straight into Arrow columns, so building the row objects again would be for nothing.
_DECODER = msgspec.msgpack.Decoder(list[list[list[Any]]])


def rows_by_table(packed: list[bytes]) -> dict[str, list[list[Any]]]:
    """Unpack the operator's output: rows by table, fields in the order of the columns."""
    tables: dict[str, list[list[Any]]] = {name: [] for name in Rows.__struct_fields__}
    for payload in packed:
        for name, rows in zip(Rows.__struct_fields__, _DECODER.decode(payload), strict=True):
            tables[name].extend(rows)
    return tables


def batch_writer(
    lake: Lake, done: Callable[[int, dict[str, int]], None] | None = None
) -> Callable[[DataFrame, int], None]:
    """Build the function for `foreachBatch`.

    Args:
        lake: Where the rows go.
        done: Called after each batch with its number and the rows written per table.
    """

    def write(batch: DataFrame, number: int) -> None:
        # The id belongs to the checkpoint: a new checkpoint begins at batch 0 again and must not be taken for it.
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        tables = rows_by_table(batch.toArrow().column("rows").to_pylist())
        written = {}
        for table in TABLES:
            if rows := tables[table.name]:
                written[table.name] = lake.append(table.name, rows, query, number)
        if done is not None:
            done(number, written)

    return write
