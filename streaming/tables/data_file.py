"""Data files: how tasks of a batch write them, and what to say where one that a table names is gone.

delta-rs writes files and commits them in one call. Where executors write a batch, the driver commits for all, so the
tasks write files without a commit, with the statistics of Delta's log.

Which files are gone is noted in the folder `_lost` of the lake. It lets a rebuild (`streaming.job.rebuild`) write their
rows again in a table that otherwise has everything.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction

from streaming.exceptions import EvenkeelError
from streaming.tables.schema import Table

# Rows of a row group: a reader of one group opens a few of them. 131,072 rows of `lag` are about a megabyte.
_GROUP_ROWS = 131_072

# Longer texts get no bounds in the log: a group id may have 32 kB, and every reader loads the whole log.
_LONGEST_BOUND = 128

# What readers prune by, beside key and order (`DeltaLogTail`, the alerter's start).
_BOUNDED = ("round", "round_time", "record_time", "attempt_time", "to_time")


# What Hive, and all after it, call the folder of the rows without a value.
_NO_DAY = "__HIVE_DEFAULT_PARTITION__"


def file_sized(batches: Iterable[pa.RecordBatch], most_rows: int, most_bytes: int) -> Iterator[pa.Table]:
    """The same rows as tables for a file each.

    Args:
        batches: Rows.
        most_rows: A table ends with the batch that reaches so many rows.
        most_bytes: Likewise, bytes in memory: rows may have names of 32 KB.
    """
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        kept.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield pa.Table.from_batches(kept)
            kept, rows, size = [], 0, 0
    if kept:
        yield pa.Table.from_batches(kept)


def rows_of(file: AddAction) -> int:
    """Rows of a file that `new_files` has written."""
    return int(json.loads(file.stats)["numRecords"])


def new_files(table: Table, rows: pa.Table, uri: str) -> list[AddAction]:
    """Write rows as new files of a table, one for each day, which no reader sees until a commit names them.

    Args:
        table: The table.
        rows: Rows with all columns.
        uri: Where the table lies.

    Returns:
        What the commit says of each.

    Raises:
        OSError: One could not be written. (What was written stays without a commit until vacuum deletes it.)
    """
    if DAY not in table.partition_by:
        return [_new_file(table, rows, uri, "", {})]
    actions = []
    for day in pc.unique(rows[DAY]).to_pylist():
        of_day = rows.filter(pc.is_null(rows[DAY]) if day is None else pc.equal(rows[DAY], day))
        text = None if day is None else day.isoformat()
        actions.append(_new_file(table, of_day, uri, f"{DAY}={text or _NO_DAY}/", {DAY: text}))
    return actions


def _new_file(table: Table, rows: pa.Table, uri: str, place: str, partition: dict[str, str | None]) -> AddAction:
    # The day is in the name of its folder.
    schema = pa.schema([f.remove_metadata() for f in table.arrow_schema if f.name not in table.partition_by])
    stored, folder, path = (
        rows.select(schema.names).cast(schema),
        file_system(uri),
        f"{place}part-{uuid.uuid4()}.zstd.parquet",
    )
    if place:
        folder.create_dir(place, recursive=True)
    with folder.open_output_stream(path) as stream:
        pq.write_table(stored, stream, compression="zstd", row_group_size=_GROUP_ROWS, store_schema=False)
    size, now = folder.get_file_info(path).size, time.time_ns() // 1_000_000
    return AddAction(path, size, partition, now, data_change=True, stats=_statistics(table, stored))


def _statistics(table: Table, rows: pa.Table) -> str:
    """Statistics of a file as Delta's log has them, JSON: of the columns that readers prune by.

    https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
    """
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in dict.fromkeys((*table.key, *table.newest_by, *_BOUNDED)):
        if name not in rows.column_names:
            continue
        column = rows[name]
        bounds = pc.min_max(column).as_py()
        least, most = _as_json(bounds["min"]), _as_json(bounds["max"])
        nulls[name] = column.null_count
        if least is not None and most is not None:
            low[name], high[name] = least, most
    return json.dumps({"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls})


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value) > _LONGEST_BOUND:
        return None
    return value


_FOLDER = "_lost"

# What Arrow, DuckDB and object stores say of a file that is not there; and how a data file's name ends.
_GONE = re.compile(r"No such file|No files found|not found|NotFound|NoSuchKey", re.IGNORECASE)
_DATA = re.compile(r"(?<!checkpoint)\.parquet")

_REPAIR = (
    "a data file is gone: restore it, or stop the job and run evenkeel maintain --repair, which takes it out of the "
    "table, and evenkeel run --rebuild-state, which writes its rows again as far as Kafka holds the records"
)


class LakeUnreadableError(EvenkeelError):
    """A table is there and cannot be read: broken, forbidden, or with features that its readers must not have."""


class LakeUnwritableError(EvenkeelError):
    """A table could not be written; whether the last commit was made is not known."""


DAY = "event_date"
"""The column that partitions tables, and the only one that any is partitioned by."""


def file_system(uri: str) -> Any:
    """The folder of a table, as Arrow's file system."""
    if "://" in uri:
        return pa_fs.PyFileSystem(DeltaStorageHandler(uri))
    return pa_fs.SubTreeFileSystem(str(Path(uri).resolve()), pa_fs.LocalFileSystem())


def advice(error: BaseException, otherwise: str) -> str:
    """What to do after an error while a table's files were read."""
    if _GONE.search(str(error)) and _DATA.search(str(error)):
        return _REPAIR
    return otherwise


@contextmanager
def naming_what_is_lost(what: str) -> Iterator[None]:
    """Say what to do where DuckDB or Arrow finds a data file gone; their other errors pass.

    Args:
        what: What is read, to begin the message with: "The lake" and its root.

    Raises:
        LakeUnreadableError: A data file is gone.
    """
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if not (repair := advice(error, "")):
            raise
        message = f"{what} cannot be read ({str(error)[:300]}): {repair}."
        raise LakeUnreadableError(message) from error


def note_lost(root: str, table: str, paths: Iterable[str]) -> None:
    """Keep which files of a table are gone; call it before they are taken out of the table."""
    folder = file_system(root)
    folder.create_dir(_FOLDER, recursive=True)
    with folder.open_output_stream(f"{_FOLDER}/{table}-{time.time_ns()}.json") as stream:
        stream.write(json.dumps(list(paths)).encode())


def has_lost(root: str, table: str) -> bool:
    """Whether files of a table were ever noted."""
    noted = file_system(root).get_file_info(pa_fs.FileSelector(_FOLDER, allow_not_found=True))
    return any(info.base_name.startswith(f"{table}-") for info in noted)
