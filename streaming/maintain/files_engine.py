"""`evenkeel maintain --engine spark` on an object store: tasks read and write the files, and we commit.

Delta's own commands would overwrite commits of a running job there (docs/object-stores.md). So tasks read the files of
a day through delta-rs's client, Spark brings the rows of a group together, tasks write new files, and one commit
replaces the old ones: the same that maintenance without a cluster makes. Spark needs no jar for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from deltalake.transaction import AddAction
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.maintain.delta_table import open_table
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.plan import Limits
from streaming.tables import DAY, Table, data_set, file_system, new_files, patiently, stored_schema, table_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FilesEngine"]

_GROUP = "group_id"

_Batches = Iterator[pa.RecordBatch]

# Files that a task reads: enough that a task is worth its start, and few enough for many tasks.
_FILES_A_TASK = 100


class FilesEngine:
    """Compaction in one Spark session."""

    def __init__(self, spark: SparkSession, limits: Limits | None = None) -> None:
        self._spark, self._limits = spark, limits or Limits()

    def compact(self, table: Table, uri: str, day: date) -> None:
        """Join the files of one day of a partitioned table, the rows of a group together.

        Raises:
            MaintenanceError: Spark could not, or another program replaced the files meanwhile.
        """
        opened = open_table(uri.removesuffix(f"/{table.name}"), table)
        if opened is None:
            return
        files = [file for file in opened.files() if file.day == day]
        count = max(
            -(-sum(file.size for file in files) // self._limits.piece_bytes),
            -(-sum(file.rows for file in files) // self._limits.piece_rows),
            1,
        )
        places = self._spark.createDataFrame([(file.place,) for file in files], "place string")
        rows = places.repartition(-(-len(files) // _FILES_A_TASK)).mapInArrow(_reader(table.name, uri), _schema(table))
        rows = rows.repartitionByRange(count, _GROUP) if _GROUP in table.key and count > 1 else rows.coalesce(count)
        try:
            found = rows.mapInArrow(_writer(table.name, uri, day), "file binary").collect()
        except (PySparkException, Py4JError, OSError) as error:
            lines = [line.strip() for line in str(error).splitlines()]
            reason = next((line for line in lines if "Error: " in line), type(error).__name__)
            message = (
                f"Spark could not maintain the table {uri} ({reason[:300]}): check that all nodes reach its store."
            )
            raise MaintenanceError(message) from None
        actions = [msgspec.json.decode(file, type=AddAction) for (file,) in found]
        read, written = sum(file.rows for file in files), sum(_rows_of(action) for action in actions)
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


def _rows_of(action: AddAction) -> int:
    return int(msgspec.json.decode(action.stats)["numRecords"])


def _schema(table: Table) -> str:
    columns = (column for column in table.columns if column.name not in table.partition_by)
    return ", ".join(f"`{column.name}` {column.type.sql}" for column in columns)


def _reader(name: str, uri: str) -> Callable[[_Batches], _Batches]:
    """Build the function of a task that reads files."""

    def read(batches: _Batches) -> _Batches:
        schema = stored_schema(table_named(name))
        places = [place for batch in batches for place in batch.column("place").to_pylist()]
        yield from data_set([(place, None) for place in places], schema, file_system(uri)).to_batches()

    return read


def _writer(name: str, uri: str, day: date) -> Callable[[_Batches], _Batches]:
    """Build the function of a task that writes one file."""

    def write(batches: _Batches) -> _Batches:
        table = table_named(name)
        kept = list(batches)
        if not sum(batch.num_rows for batch in kept):
            return
        rows = pa.Table.from_batches(kept)
        rows = rows.append_column(DAY, pa.repeat(pa.scalar(day, pa.date32()), rows.num_rows))
        for action in patiently(uri, lambda: new_files(table, rows, uri)):
            file = pa.array([msgspec.json.encode(asdict(action))], pa.binary())
            yield pa.RecordBatch.from_arrays([file], names=["file"])

    return write
