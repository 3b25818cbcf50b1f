"""Read a lake with SQL and without Spark: every table and `_current` view under its name in DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.tables.current import VIEWS
from streaming.tables.dataset import all_rows
from streaming.tables.schema import ALL_TABLES, Table

__all__ = ["LakeReader", "has_rows_of"]


def has_rows_of(root: str, table: Table, cluster: str) -> bool:
    """Whether a table of a lake holds a row of a cluster; False where there is no such table.

    Files that cannot hold one, by their statistics, are not opened.
    """
    location = f"{root.rstrip('/')}/{table.name}"
    try:
        opened = DeltaTable(location)
    except TableNotFoundError:
        return False
    rows = all_rows(table, opened, location, lambda file: _can_hold(file, cluster))
    found: pa.Table = rows.head(1, columns=["cluster"], filter=ds.field("cluster") == cluster)
    return bool(found.num_rows)


def _can_hold(file: Mapping[str, Any], cluster: str) -> bool:
    low, high = file.get("min.cluster"), file.get("max.cluster")
    return bool(low is None or high is None or low <= cluster <= high)


class LakeReader:
    """SQL over one lake.

    Tables that nobody has created yet read as empty, so that a reader may start before the job. Each `refresh`
    shows the newest version of every table; tables written one after the other by a batch may differ by one batch.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = str(root).rstrip("/")
        self._tables: dict[str, DeltaTable] = {}
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._have_views = False
        self.refresh()

    def refresh(self) -> None:
        """Look at the newest version of every table."""
        for table in ALL_TABLES:
            known = self._tables.get(table.name)
            if known is not None:
                known.update_incremental()
            else:
                try:
                    known = self._tables[table.name] = DeltaTable(f"{self._root}/{table.name}")
                except TableNotFoundError:
                    self._connection.register(table.name, table.arrow_schema.empty_table())
                    continue
            self._connection.register(table.name, all_rows(table, known, f"{self._root}/{table.name}"))
        if not self._have_views:
            for name, sql in VIEWS.items():
                self._connection.execute(f"CREATE VIEW {name} AS {sql}")
            self._have_views = True

    def rows(self, sql: str, parameters: list[Any] | None = None) -> list[dict[str, Any]]:
        """Run a query; one dict per row."""
        cursor = self._connection.execute(sql, parameters or [])
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def count(self, table: str) -> int:
        """Rows of a table or view."""
        return int(self.rows(f'SELECT count(*) AS n FROM "{table}"')[0]["n"])  # noqa: S608
