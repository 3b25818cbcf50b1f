"""Data files that a table names and that are gone: what to say of them, and a note of what their rows were.

The note is a file in the folder `_lost` of the lake. It lets a rebuild (`streaming.job.rebuild`) write such rows again
in a table that otherwise has everything.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import duckdb
import pyarrow.fs as pa_fs

from streaming.tables.dataset import LakeUnreadableError, file_system

_FOLDER = "_lost"

# What Arrow, DuckDB and object stores say of a file that is not there; and how a data file's name ends.
_GONE = re.compile(r"No such file|No files found|not found|NotFound|NoSuchKey", re.IGNORECASE)
_DATA = re.compile(r"(?<!checkpoint)\.parquet")

_REPAIR = (
    "a data file is gone: restore it, or stop the job and run evenkeel maintain --repair, which takes it out of the "
    "table, and evenkeel run --rebuild-state, which writes its rows again as far as Kafka holds the records"
)


def advice(error: BaseException, otherwise: str) -> str:
    """What to do after an error while a table's files were read."""
    return _REPAIR if _GONE.search(str(error)) and _DATA.search(str(error)) else otherwise


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


@dataclass(frozen=True, slots=True)
class LostFile:
    """A data file that is gone.

    Attributes:
        path: Path inside the table's folder.
        rows: Rows that it had; None where the log does not tell.
        first_round: Its first round; None where the log does not tell, or its rows have none.
        last_round: Its last one.
        first_group: First group id in it, in the order of texts; None likewise.
        last_group: The last one.
    """

    path: str
    rows: int | None
    first_round: int | None
    last_round: int | None
    first_group: str | None
    last_group: str | None


def note_lost(root: str, table: str, files: Iterable[LostFile]) -> None:
    """Keep what is known of the files; call it before they are taken out of the table."""
    folder = file_system(root)
    folder.create_dir(_FOLDER, recursive=True)
    with folder.open_output_stream(f"{_FOLDER}/{table}-{time.time_ns()}.json") as stream:
        stream.write(json.dumps([asdict(file) for file in files]).encode())


def noted_lost(root: str, table: str) -> list[LostFile]:
    """The files of a table that were ever noted."""
    folder = file_system(root)
    found = []
    for info in folder.get_file_info(pa_fs.FileSelector(_FOLDER, allow_not_found=True)):
        if info.base_name.startswith(f"{table}-"):
            with folder.open_input_stream(info.path) as stream:
                found += [LostFile(**file) for file in json.loads(stream.read())]
    return found
