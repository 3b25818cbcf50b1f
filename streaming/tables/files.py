"""The folder of a table, and what to say where it cannot be read or a data file that it names is gone.

Which files are gone is noted in the folder `_lost` of the lake. It lets a rebuild (`streaming.job.rebuild`) write their
rows again in a table that otherwise has everything.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.fs as pa_fs
from deltalake.fs import DeltaStorageHandler

from streaming.exceptions import EvenkeelError

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
