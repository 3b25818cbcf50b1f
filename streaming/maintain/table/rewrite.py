"""The rows of some files of a table, as maintenance reads them to write them again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from streaming.maintain.table.plan import File
from streaming.tables import Table, data_set, stored_schema


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


def unknown_columns(table: Table, opened: DeltaTable) -> tuple[str, ...]:
    """Columns of a table's log that this release does not have, in order, and fields inside others ("findings.note").

    Nothing that reads by the table's schema sees them.

    Args:
        table: The table.
        opened: The same, opened.
    """
    known = set(_paths(table.arrow_schema))
    return tuple(path for path in _paths(pa.schema(opened.schema())) if path not in known)


def _paths(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[str]:
    for field in fields:
        path = f"{prefix}{field.name}"
        yield path
        kind = field.type
        while isinstance(kind, pa.ListType | pa.LargeListType):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield from _paths(kind, f"{path}.")


def encoded_data_set(
    files: Iterable[tuple[str, date | None]], schema: pa.Schema, folder: Any, plain: Collection[str] = ()
) -> ds.FileSystemDataset:
    """As `data_set`, with all texts dictionary-encoded, except for the columns `plain`."""
    texts = [field.name for field in schema if pa.types.is_string(field.type) and field.name not in plain]
    encoded = pa.schema(
        [field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in texts else field for field in schema]
    )
    return data_set(files, encoded, folder, texts)
