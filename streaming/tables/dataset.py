"""A Delta table as an Arrow data set of its files.

Not delta-rs's own (`to_pyarrow_dataset`): what it tells Arrow of a file's columns without statistics makes every
filter on them false, so a table that was compacted by an engine that keeps statistics of its first 32 columns would
answer a question about the 33rd with no rows. Here a file promises nothing but its day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from streaming.exceptions import EvenkeelError
from streaming.tables.schema import Table


class LakeUnreadableError(EvenkeelError):
    """A table is there and cannot be read: broken, forbidden, or with features that its readers must not have."""


class LakeUnwritableError(EvenkeelError):
    """A table could not be written; whether the last commit was made is not known."""


DAY = "event_date"
"""The column that partitions tables, and the only one that any is partitioned by."""

# What a reader of plain Parquet files would get wrong.
_UNREADABLE_FEATURES = frozenset({"deletionVectors", "columnMapping"})


def refuse_features(table: DeltaTable, uri: str) -> None:
    """Refuse a table whose files are not all there is to its rows.

    Raises:
        LakeUnreadableError: It has deletion vectors or column mapping.
    """
    features = set(table.protocol().reader_features or ())
    if table.protocol().min_reader_version == 2 or features & _UNREADABLE_FEATURES:
        message = (
            f"The table {uri} needs a reader of {', '.join(sorted(features)) or 'column mapping'}: "
            "turn that feature off, as it was when the table was created."
        )
        raise LakeUnreadableError(message)


def file_system(uri: str) -> Any:
    """The folder of a table, as Arrow's file system."""
    if "://" in uri:
        return pa_fs.PyFileSystem(DeltaStorageHandler(uri))
    return pa_fs.SubTreeFileSystem(str(Path(uri).resolve()), pa_fs.LocalFileSystem())


def all_rows(
    table: Table, opened: DeltaTable, uri: str, wanted: Callable[[Mapping[str, Any]], bool] | None = None
) -> ds.FileSystemDataset:
    """All rows of a table at the version that is open.

    Args:
        table: The table.
        opened: The same, opened.
        uri: Where it lies.
        wanted: Which files to take, by their flat add action; None takes all.

    Raises:
        LakeUnreadableError: As `refuse_features`.
    """
    refuse_features(opened, uri)
    day = f"partition.{DAY}"
    actions = pa.table(opened.get_add_actions(flatten=True))
    names = ("path", day) if wanted is None else tuple(actions.column_names)
    files = actions.select([name for name in names if name in actions.column_names]).to_pylist()
    form, folder = ds.ParquetFileFormat(), file_system(uri)
    fragments = [
        form.make_fragment(
            unquote(file["path"]),
            filesystem=folder,
            partition_expression=None if file.get(day) is None else ds.field(DAY) == pa.scalar(file[day]),
        )
        for file in files
        if wanted is None or wanted(file)
    ]
    return ds.FileSystemDataset(fragments, table.arrow_schema, form, folder)
