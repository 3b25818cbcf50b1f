"""What happens to the rows of a batch: each table's are appended once, by the driver or by the executors.

The operator's output is computed in one action, and all tables are made from the same bytes. Spark would run the
operator again for every further action, and since 4.1 it fails with `STATE_STORE_COMMIT_VALIDATION_FAILED` unless an
action reads every state partition. So a batch is collected at once, or kept where it was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import functions

from streaming.job.spark_writer import write_with_spark
from streaming.job.unpack import rows_by_table
from streaming.tables import TABLES, DeltaLake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streaming.config import Writer
    from streaming.tables import Lake

# `auto` collects a batch of up to so many packed bytes, about 400,000 rows: the driver and its JVM grow by some
# 500 MB for them. Memory decides, because Spark's writer takes several times the processor time at any size
# (docs/performance.md).
_COLLECTED_BYTES = 60_000_000

# In a larger batch it still collects the tables of up to so many rows. They take the driver 60 MB and 0.5 s, where
# Spark's writer takes 2 s for a table with one row.
_COLLECTED_ROWS = 100_000


def batch_writer(
    lake: Lake,
    done: Callable[[int, dict[str, int]], None] | None = None,
    running: Callable[[bool], None] = lambda _: None,
    writer: Writer = "delta-rs",
    catalog: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """Build the function for `foreachBatch`.

    Args:
        lake: Where the rows go.
        done: Called after each batch with its number and the rows written per table.
        running: Called with True when a batch begins, and with False when it is written.
        writer: What writes them, as `job.writer`. A lake that looks at the rows, as a rebuild's does, gets them here.
        catalog: Schema in which the tables are registered; None for none.
    """

    def write(batch: DataFrame, number: int) -> None:
        running(True)
        # The id belongs to the checkpoint: a new checkpoint begins at batch 0 again and must not be taken for it.
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if writer == "delta-rs" or not isinstance(lake, DeltaLake):
            written = _write_here(batch, lake, query, number)
        elif writer == "spark" or catalog is not None:
            written = write_with_spark(batch, lake, query, number, catalog=catalog)
        else:
            written = _write_by_size(batch, lake, query, number)
        running(False)
        if done is not None:
            done(number, written)

    return write


def _write_here(batch: DataFrame, lake: Lake, query: str, number: int) -> dict[str, int]:
    """Collect the rows of a batch and append them from this process."""
    packed = batch.toArrow().column("rows")
    tables = rows_by_table(payload for chunk in packed.iterchunks() for payload in chunk.to_pylist())
    return {
        table.name: lake.append(table.name, tables[table.name], query, number)
        for table in TABLES
        if table.name in tables
    }


def _write_by_size(batch: DataFrame, lake: DeltaLake, query: str, number: int) -> dict[str, int]:
    """The first action computes the batch, and says how large it is."""
    batch.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        size = batch.select(functions.sum(functions.length("rows"))).collect()[0][0] or 0
        if size <= _COLLECTED_BYTES:
            return _write_here(batch, lake, query, number)
        return write_with_spark(batch, lake, query, number, collected=_COLLECTED_ROWS)
    finally:
        batch.unpersist()
