"""Read a lake with SQL and without Spark: every table and `_current` view under its name in DuckDB.

The `_current` views have the newest row of each key, without what has ended, in plain SQL that Spark and DuckDB both
run. A group that has ended takes its verdict with it, and what other strategies would have done; a cluster that is
closed takes all of its present. Decisions are history and stay, with their newest revision.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc

from streaming.tables.data_file import naming_what_is_lost
from streaming.tables.memory import fetched_dicts, in_memory
from streaming.tables.opened import OpenedTable
from streaming.tables.schema import ALL_TABLES, Table


def current_sql(table: Table, newest: str | None = None, only: Collection[str] | None = None) -> str:
    """SELECT of the view `<table>_current` over tables and views of the plain names.

    Args:
        table: The table.
        newest: A table that has the newest row of each key and no other; None finds them under the table's own name.
        only: Columns, if not all.
    """
    columns = ", ".join(f"t.{c.name}" for c in table.columns if only is None or c.name in only)
    source, wanted = f"{newest} AS t", []
    if newest is None:
        key, order = ", ".join(table.key), ", ".join(f"{column} DESC" for column in table.newest_by)
        ranked = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS age FROM {table.name}"  # noqa: S608
        source, wanted = f"({ranked}) AS t", ["t.age = 1"]
    if table.with_group:
        source += " JOIN group_health_current AS g ON g.cluster = t.cluster AND g.group_id = t.group_id"
    if table.closes:
        wanted.append("NOT t.ended")
    if table.with_cluster:
        wanted.append(
            "NOT EXISTS (SELECT 1 FROM clusters_current AS c WHERE c.cluster = t.cluster AND c.state = 'closed')"
        )
    return f"SELECT {columns} FROM {source} WHERE {' AND '.join(wanted) or 'TRUE'}"  # noqa: S608


VIEWS = {
    f"{table.name}_current": current_sql(table)
    for table in sorted(ALL_TABLES, key=lambda table: (table.with_group, table.name != "clusters"))
    if table.newest_by
}
"""SQL by view name, in an order in which they can be created. Tables of history have no view: they have no present."""


class LakeReader:
    """SQL over one lake.

    Tables that nobody has created yet read as empty, so that a reader may start before the job. A table is opened when
    a query first names it, because most need one or two of the two dozen. Each `refresh` shows the newest version of
    every table; tables written one after the other by a batch may differ by one batch.
    """

    def __init__(
        self, root: str | Path, connection: duckdb.DuckDBPyConnection | None = None, cluster: str | None = None
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            root: Folder or URI of the lake.
            connection: Runs the queries; None for one of `in_memory`.
            cluster: Show only the rows of this one; None shows those of all.
        """
        self._cluster = cluster
        self._root = str(root).rstrip("/")
        self._tables = {table.name: OpenedTable(self._root, table) for table in ALL_TABLES}
        self._connection = in_memory() if connection is None else connection
        self._missing = {*self._tables, *VIEWS}

    def refresh(self) -> None:
        """Look at the newest version of every table."""
        self._open(self._tables)

    def _open(self, names: Iterable[str]) -> None:
        for name in names:
            opened = self._tables[name]
            opened.refresh()
            rows = opened.rows()
            if self._cluster is not None:
                rows = rows.filter(pc.field("cluster") == self._cluster)
            self._connection.register(name, rows)
            self._missing.discard(name)

    def rows(self, sql: str, parameters: list[Any] | Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run a query; one dict per row. Parameters are `?` in a list, or `$name` by name.

        Raises:
            LakeUnreadableError: A data file is gone, or a table has features with which its files are not all there is.
            duckdb.Error: Anything else is wrong, such as the query.
        """
        missing = _named(sql) & self._missing
        self._open(missing & self._tables.keys())
        for view, of_view in VIEWS.items():
            if view in missing:
                self._connection.execute(f"CREATE TEMP VIEW {view} AS {of_view}")
        self._missing -= missing
        with naming_what_is_lost(f"The lake {self._root}"):
            return fetched_dicts(self._connection, sql, parameters or [])

    def count(self, table: str) -> int:
        """Rows of a table or view."""
        return int(self.rows(f'SELECT count(*) AS n FROM "{table}"')[0]["n"])  # noqa: S608

    def transaction(self, table: str, application: str) -> int | None:
        """The newest version of an application's transactions on a table; None without one, or without the table."""
        self._open({table} & self._missing)
        return self._tables[table].transaction(application)


def _named(sql: str) -> set[str]:
    """Names of a query that may be tables, also of the views that it names."""
    words = set(re.findall(r"\w+", sql.lower()))
    return words.union(*(_named(VIEWS[view]) for view in words & VIEWS.keys()))
