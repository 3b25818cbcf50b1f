"""Connections to one database in memory, for SQL over rows that a process holds already.

Opening a database takes 30 ms of processor time, because DuckDB writes its whole catalogue; a further connection to one
that is open takes none.
"""

from __future__ import annotations

from functools import cache

import duckdb


def in_memory() -> duckdb.DuckDBPyConnection:
    """A connection whose times are in UTC; close it, or use it as a context manager.

    What is registered with it, and temporary tables and views, are its own. All else would be seen by everyone in this
    process: do not create it.
    """
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def limited() -> duckdb.DuckDBPyConnection:
    """A connection as from `in_memory`, to a database that may use 1 GB: for work beside a job that needs the rest."""
    connection = _limited_database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def _limited_database() -> duckdb.DuckDBPyConnection:
    # (Without a limit DuckDB takes four fifths of the machine's memory.)
    return duckdb.connect(config={"memory_limit": "1GB"})


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()
