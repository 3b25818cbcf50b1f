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


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()
