"""SQL that registers the tables of a lake as external tables, and their `_current` views, for three engines.

A table is registered with nothing but its location. Columns, comments, partitioning and properties are in its Delta
log, where the engines find them. Statements that repeated them would fail for each difference in a comment or a
property (`DELTA_CREATE_TABLE_SCHEME_MISMATCH` of Delta 4.4), so for every table that an older release has created.

Managed tables are left out: only their catalog may write them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from streaming.exceptions import SetupError
from streaming.tables import ALL_TABLES, VIEWS, reads, table_named

Dialect = Literal["spark", "databricks", "duckdb"]
"""Spark with Delta's catalog; Databricks, for Unity Catalog; DuckDB with its extension `delta`."""

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


def statements(dialect: Dialect, lake: str, schema: str, present: Mapping[str, Sequence[str]]) -> list[str]:
    """The statements, in the order in which they can run, each without its semicolon. Running them again is harmless.

    Args:
        dialect: Whose SQL.
        lake: Folder, which is made absolute, or URI, which is taken as it is.
        schema: Schema that is created where it is not there; with dots for one in a catalog (`main.evenkeel`).
        present: The tables that are there, and the columns that each has (`columns_of`). The others are left out: Spark
            would create a table without columns in their place, which the job would then find. So are the views that
            read them, or that read a column which its table will only have once this release has written to it.

    Raises:
        SetupError: The schema has an empty name.
    """
    parts = schema.split(".")
    if not all(parts):
        message = f"The schema {schema!r} has an empty name: give NAME, or CATALOG.NAME."
        raise SetupError(message)
    tables = [table.name for table in ALL_TABLES if table.name in present]
    root = lake.rstrip("/") if "://" in lake else str(Path(lake).resolve())
    views = views_of(present)
    if dialect == "duckdb":
        return _duckdb(parts, root, {table: present[table] for table in tables}, views)
    return _spark(parts, root, tables, views, in_unity=dialect == "databricks")


def views_of(present: Mapping[str, Collection[str]]) -> list[str]:
    """The views that read nothing but these tables in full, or views of this list."""
    known = {
        table for table, columns in present.items() if {c.name for c in table_named(table).columns} <= set(columns)
    }
    found = []
    for name, read in zip(VIEWS, reads(VIEWS.values()), strict=True):
        if read.tables <= known:
            known.add(name)
            found.append(name)
    return found


def _spark(schema: list[str], root: str, tables: list[str], views: list[str], *, in_unity: bool) -> list[str]:
    # (A path without a scheme would be looked for in the file system that is Spark's default, such as HDFS.)
    place = root if "://" in root else f"file://{root}"
    name = ".".join(map(_in_backticks, schema))
    found = [f"CREATE SCHEMA IF NOT EXISTS {name}", f"USE SCHEMA {name}" if in_unity else f"USE {name}"]
    for table in tables:
        location = _spark_text(f"{place}/{table}")
        found.append(f"CREATE TABLE IF NOT EXISTS {_in_backticks(table)} USING delta LOCATION {location}")
        if in_unity:
            # Unity Catalog keeps a copy of the columns, which does not follow the log by itself.
            found.append(f"MSCK REPAIR TABLE {_in_backticks(table)} SYNC METADATA")
    for view in views:
        table = _table_of(view)
        columns = ",\n  ".join(
            f"{_in_backticks(c.name)} COMMENT {_spark_text(c.comment)}" for c in table_named(table).columns
        )
        head = (
            f"CREATE OR REPLACE VIEW {_in_backticks(view)} (\n  {columns}\n)\nCOMMENT {_spark_text(_comment_of(view))}"
        )
        found.append(f"{head}\nAS {VIEWS[view]}")
    return found


def _duckdb(schema: list[str], root: str, tables: Mapping[str, Sequence[str]], views: list[str]) -> list[str]:
    name = ".".join(map(_in_quotes, schema))
    found = ["INSTALL delta", "LOAD delta", f"CREATE SCHEMA IF NOT EXISTS {name}", f"USE {name}"]
    # (By name: a view of `SELECT *` fails as soon as its table has one more column.)
    sources = {
        table: f"SELECT {', '.join(map(_in_quotes, columns))} FROM delta_scan({_duckdb_text(f'{root}/{table}')})"  # noqa: S608
        for table, columns in tables.items()
    }
    comments = {table: table_named(table).comment for table in tables}
    for view in views:
        sources[view], comments[view] = VIEWS[view], _comment_of(view)
    for view, source in sources.items():
        found.append(f"CREATE OR REPLACE VIEW {_in_quotes(view)} AS {source}")
        found.append(f"COMMENT ON VIEW {_in_quotes(view)} IS {_duckdb_text(comments[view])}")
    return found


def _table_of(view: str) -> str:
    return view.removesuffix("_current")


def _comment_of(view: str) -> str:
    table = table_named(_table_of(view))
    ended = ", without keys that have ended" if table.closes else ""
    return f"The newest row of each key of {table.name} ({', '.join(table.key)}){ended}"


def _in_backticks(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spark_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _duckdb_text(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
