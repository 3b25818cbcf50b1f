"""Databases in memory: connections to one for SQL over rows that a process holds already, and one that holds many rows.

Opening a database takes 30 ms of processor time, because DuckDB writes its whole catalogue; a further connection to one
that is open takes none.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final
from uuid import uuid4

import duckdb
import pyarrow as pa

# DuckDB's allocator keeps what was freed for the next time: after a day of 6 million rows was read in, 450 MB for 40 MB
# of compressed rows. With these it gives back what is beyond 16 MB, at once or after a second.
_GIVES_BACK: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allocator_background_threads": "true",
    "allocator_flush_threshold": "16MB",
    "allocator_bulk_deallocation_flush_threshold": "16MB",
}

# `fetched_few` means to: see there.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning, "streaming.tables.memory")


def in_memory() -> duckdb.DuckDBPyConnection:
    """A connection whose times are in UTC; close it, or use it as a context manager.

    What is registered with it, and temporary tables and views, are its own. All else would be seen by everyone in this
    process: do not create it.
    """
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def limited() -> duckdb.DuckDBPyConnection:
    """A connection as from `in_memory`, to a database of its own that may use 1 GB.

    For work beside a job that needs the rest, and for questions of viewers beside an alerter, which would get no memory
    while another query of its own database holds all of it.
    """
    connection = _limited_database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def holding() -> duckdb.DuckDBPyConnection:
    """A connection to a database of its own, that is to hold many rows for as long as a process lives.

    They are compressed, to a tenth and less, by each `CHECKPOINT` that no other transaction is in the way of.
    """
    connection = duckdb.connect(config={**_GIVES_BACK, "temp_directory": _spill()})
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB draws a bar, even into a file, for what takes longer than two seconds.
    connection.execute("SET enable_progress_bar = false")
    return connection


def fetched_few(
    connection: duckdb.DuckDBPyConnection, sql: str, given: Mapping[str, Any] | Sequence[object] = ()
) -> pa.Table:
    """Run a query whose statement costs more than its rows; returns them.

    DuckDB copies the rows once more than for `connection.sql(…).to_arrow_table()`, which on the other hand binds the
    statement twice: a fifth of the time of a long one over few rows.
    """
    return connection.execute(sql, given).to_arrow_table()


def computed(
    sources: Mapping[str, Any],
    sql: str,
    given: Mapping[str, Any] | Sequence[object] = (),
    *,
    beside_viewers: bool = False,
) -> pa.Table:
    """Run a query over rows that a process holds, or data sets.

    Args:
        sources: The rows, by the name that the query has for them.
        sql: The query.
        given: Its parameters.
        beside_viewers: As of `OpenedTable.ask`.
    """
    with in_memory() if beside_viewers else limited() as connection:
        for name, rows in sources.items():
            connection.register(name, rows)
        return fetched_few(connection, sql, given)


def fetched_dicts(
    connection: duckdb.DuckDBPyConnection, sql: str, given: Mapping[str, Any] | Sequence[object] = ()
) -> list[dict[str, Any]]:
    """Run a query; one dict per row."""
    cursor = connection.execute(sql, given)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def give_back() -> None:
    """Give memory that was freed back to the system: Arrow's pool and the C library keep it for the next time."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


@cache
def _limited_database() -> duckdb.DuckDBPyConnection:
    # Without a limit DuckDB takes four fifths of the machine's memory.
    return duckdb.connect(config={"memory_limit": "1GB", "temp_directory": _spill()})


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"temp_directory": _spill()})


def _spill() -> str:
    # What does not fit goes to a folder that DuckDB makes when it needs it, by default in the working directory, where
    # a service may not write.
    return str(Path(gettempdir()) / f"evenkeel-duckdb-{uuid4()}")
