"""`evenkeel maintain --engine spark` on an object store: tasks read and write the files, and we commit.

Delta's own commands would overwrite commits of a running job there (docs/object-stores.md). So tasks read the files of
a day through delta-rs's client, Spark brings the rows of a group together, tasks write new files, and one commit
replaces the old ones: the same that maintenance without a cluster makes. Spark needs no jar for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from deltalake.transaction import AddAction
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.delta_table import open_table
from streaming.maintain.table.plan import SORTED, Limits
from streaming.tables import (
    DAY,
    Table,
    data_set,
    file_sized,
    file_system,
    new_files,
    patiently,
    rows_of,
    store_errors,
    stored_schema,
    table_named,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FilesEngine"]

_Batches = Iterator[pa.RecordBatch]

# Bytes of a file's rows in memory, for rows with long names.
_FILE_BYTES = 1 << 30

# Files that a task reads: enough that a task is worth its start, and few enough for many tasks.
_FILES_A_TASK = 100


class FilesEngine:
    """Compaction in one Spark session."""

    def __init__(self, spark: SparkSession, limits: Limits | None = None) -> None:
        self._spark, self._limits = spark, limits or Limits()

    def compact(self, table: Table, uri: str, day: date) -> None:
        """Join the files of one day of a partitioned table, the rows of a group together.

        Raises:
            MaintenanceError: Spark could not, or another program replaced the files meanwhile; or as
                `MaintainedTable.refuse_unknown`.
        """
        opened = open_table(uri.removesuffix(f"/{table.name}"), table)
        if opened is None:
            return
        opened.refuse_unknown()
        # (What was sorted already stays.)
        files = [file for file in opened.files() if file.partition_day == day and not file.is_sorted]
        count = max(
            -(-sum(file.size for file in files) // self._limits.piece_bytes),
            -(-sum(file.rows for file in files) // self._limits.piece_rows),
            1,
        )
        places = self._spark.createDataFrame([(file.place,) for file in files], "place string")
        rows = places.repartition(-(-len(files) // _FILES_A_TASK)).mapInArrow(_reader(table.name, uri), _schema(table))
        # (By the whole key: one group can have most of the rows.)
        order = [name for name in (*table.key, *table.newest_by) if name not in table.partition_by]
        rows = rows.repartitionByRange(count, *order) if count > 1 else rows.coalesce(1)
        try:
            found = rows.mapInArrow(_writer(table.name, uri, day, self._limits), "file binary").collect()
        except (PySparkException, Py4JError, OSError) as error:
            # (Without Spark's text: it has the store's answers in it.)
            message = (
                f"Spark could not maintain the table {uri} ({type(error).__name__}): check that all nodes reach its "
                "store, and see the logs of the executors."
            )
            raise MaintenanceError(message) from None
        actions = [msgspec.json.decode(file, type=AddAction) for (file,) in found]
        read, written = sum(file.rows for file in files), sum(rows_of(action) for action in actions)
        if read != written:
            message = (
                f"Spark has made {written} rows of {read} of {day} in the table {uri}: maintain it without --engine."
            )
            raise MaintenanceError(message)
        # A follower that lost its place tells new rows by this time: these are no newer than they were.
        newest = max(file.written for file in files)
        opened.replace_by(files, [replace(one, data_change=False, modification_time=newest) for one in actions])

    def vacuum(self, uri: str) -> None:
        """Delete the files that nobody may read any more: requests to a store, which a cluster would not make faster.

        Raises:
            MaintenanceError: The store could not.
        """
        root, _, name = uri.rpartition("/")
        opened = open_table(root, table_named(name))
        if opened is not None:
            opened.vacuum(dry_run=False)


def _schema(table: Table) -> str:
    columns = (column for column in table.columns if column.name not in table.partition_by)
    return ", ".join(f"`{column.name}` {column.type.sql}" for column in columns)


def _reader(name: str, uri: str) -> Callable[[_Batches], _Batches]:
    """Build the function of a task that reads files."""

    def read(batches: _Batches) -> _Batches:
        schema = stored_schema(table_named(name))
        places = [place for batch in batches for place in batch.column("place").to_pylist()]
        with store_errors(uri):
            yield from data_set([(place, None) for place in places], schema, file_system(uri)).to_batches()

    return read


def _writer(name: str, uri: str, day: date, limits: Limits) -> Callable[[_Batches], _Batches]:
    """Build the function of a task that writes a range of the key."""

    def write(batches: _Batches) -> _Batches:
        table = table_named(name)
        for part in file_sized(batches, limits.piece_rows, _FILE_BYTES):
            rows = part.append_column(DAY, pa.repeat(pa.scalar(day, pa.date32()), part.num_rows))
            for action in patiently(uri, partial(new_files, table, rows, uri, SORTED)):
                file = pa.array([msgspec.json.encode(asdict(action))], pa.binary())
                yield pa.RecordBatch.from_arrays([file], names=["file"])

    return write
