"""Rows of some files as one Parquet file, sorted by key, with the statistics that Delta's log has of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from streaming.maintain.plan import File
from streaming.tables import DAY, Table, data_set

# Rows of a row group: a reader of one group opens a few of them. 131,072 rows of `lag` are about a megabyte.
_GROUP_ROWS = 131_072

# Longer texts get no bounds in the log: a group id may have 32 kB, and every reader loads the whole log.
_LONGEST_BOUND = 128

# What readers prune by, beside key and order (`DeltaLogTail`, the alerter's start).
_BOUNDED = ("round", "round_time", "record_time", "attempt_time", "to_time")


def read(table: Table, files: Sequence[File], folder: Any) -> pa.Table:
    """All rows of files of one day.

    Texts stay dictionary-encoded, which halves time and memory: a file of `lag` repeats some thousand of them.

    Args:
        table: The table.
        files: The files.
        folder: The table's `file_system`.

    Raises:
        OSError: A file is gone or broken.
    """
    found = encoded_data_set([(file.place, None) for file in files], stored_schema(table), folder)
    return found.to_table().unify_dictionaries().combine_chunks()


def encoded_data_set(
    files: Iterable[tuple[str, date | None]], schema: pa.Schema, folder: Any, plain: Collection[str] = ()
) -> ds.FileSystemDataset:
    """As `data_set`, with all texts dictionary-encoded, except for the columns `plain`."""
    texts = [field.name for field in schema if pa.types.is_string(field.type) and field.name not in plain]
    encoded = pa.schema(
        [field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in texts else field for field in schema]
    )
    return data_set(files, encoded, folder, texts)


def write(table: Table, rows: pa.Table, path: str, folder: Any) -> None:
    """Write rows as one file, sorted by the table's key and order.

    Args:
        table: The table.
        rows: Rows with the columns that are stored in its files (`event_date` is not, where it partitions).
        path: Path inside the table's folder.
        folder: The table's `file_system`.
    """
    order = _order(rows, [name for name in (*table.key, *table.newest_by) if name in rows.column_names])
    if parent := path.rpartition("/")[0]:
        folder.create_dir(parent, recursive=True)
    with (
        folder.open_output_stream(path) as stream,
        # (Without Arrow's own schema: it would make readers see dictionaries.)
        pq.ParquetWriter(
            stream, rows.schema, compression="zstd", store_schema=False, **_encodings(rows.schema)
        ) as writer,
    ):
        # (Sorted a row group at a time: all at once would be a second copy of all rows.)
        for start in range(0, len(order), _GROUP_ROWS):
            writer.write_table(rows.take(pa.array(order[start : start + _GROUP_ROWS])))


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Parquet's encodings by column: numbers and times as differences, all else by dictionary.

    In a sorted file neighbours differ little: offsets, rounds and times take half the bytes that dictionaries of them
    take, and are read faster. Spark (from 3.3 on), DuckDB and Polars read both.
    """
    differing = [f.name for f in schema if pa.types.is_int64(f.type) or pa.types.is_timestamp(f.type)]
    return {
        "use_dictionary": [f.name for f in schema if f.name not in differing],
        "column_encoding": dict.fromkeys(differing, "DELTA_BINARY_PACKED"),
    }


def statistics(table: Table, rows: pa.Table) -> str:
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
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        bounds = pc.min_max(column).as_py()
        least, most = _as_json(bounds["min"]), _as_json(bounds["max"])
        nulls[name] = column.null_count
        if least is not None and most is not None:
            low[name], high[name] = least, most
    return json.dumps({"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls})


def stored_schema(table: Table) -> pa.Schema:
    """Columns as the files of a table store them: the day is in the name of their folder."""
    return pa.schema([f.remove_metadata() for f in table.arrow_schema if f.name not in table.partition_by])


def _order(rows: pa.Table, columns: Sequence[str]) -> Any:
    """Positions of the rows in order."""
    # (By numbers: comparing texts row by row would be most of the work. NULL comes first.)
    return np.lexsort([_ranks(rows[name]) for name in reversed(columns)])


def _ranks(column: pa.ChunkedArray) -> Any:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    if pa.types.is_string(whole.type):
        whole = whole.dictionary_encode()
    if pa.types.is_dictionary(whole.type):
        texts = whole.dictionary
        ranks = np.full(len(texts) + 1, -1, dtype=np.int64)
        ranks[pc.sort_indices(texts).to_numpy()] = np.arange(len(texts))
        return ranks[pc.fill_null(whole.indices, len(texts)).to_numpy(zero_copy_only=False)]
    return pc.fill_null(whole.cast(pa.int64()), -(2**63)).to_numpy(zero_copy_only=False)


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value) > _LONGEST_BOUND:
        return None
    return value


def partition_of(table: Table, day: date) -> dict[str, str | None]:
    """Partition values of a file."""
    return {DAY: day.isoformat()} if DAY in table.partition_by else {}
