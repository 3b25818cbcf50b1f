"""SQL that registers the tables of a lake as external tables, and their `_current` views, for three engines.

A table is registered with nothing but its location. Columns, comments, partitioning and properties are in its Delta
log, where the engines find them. Statements that repeated them would fail for each difference in a comment or a
property (`DELTA_CREATE_TABLE_SCHEME_MISMATCH` of Delta 4.4), so for every table that an older release has created.

Managed tables are left out: only their catalog may write them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from streaming.exceptions import SetupError
from streaming.tables import ALL_TABLES, VIEWS, Table, table_named

Dialect = Literal["spark", "databricks", "duckdb"]
"""Spark with Delta's catalog; Databricks, for Unity Catalog; DuckDB with its extension `delta`."""

# Delta 4.4.0's parser drops the values of :parameters (delta-io/delta#7640). Each session with queries that have some
# needs it; Databricks' own parser does not.
_BINDS_PARAMETERS = "SET spark.sql.legacy.parameterSubstitution.constantsOnly = true"


def statements(dialect: Dialect, lake: str, schema: str) -> list[str]:
    """The statements, in the order in which they can run, each without its semicolon. Running them again is harmless.

    Every table must be there, with all columns of this release (`behind`): in the place of one that is not, Spark would
    create a table without columns, which the job would then find.

    Args:
        dialect: Whose SQL.
        lake: Folder, which is made absolute, or URI, which is taken as it is.
        schema: Schema that is created where it is not there; with dots for one in a catalog (`main.evenkeel`).

    Raises:
        SetupError: The schema has an empty name.
    """
    parts = schema.split(".")
    if not all(parts):
        message = f"The schema {schema!r} has an empty name: give NAME, or CATALOG.NAME."
        raise SetupError(message)
    root = lake.rstrip("/") if "://" in lake else str(Path(lake).resolve())
    if dialect == "duckdb":
        return _duckdb(parts, root)
    return _spark(parts, root, in_unity=dialect == "databricks")


def _spark(schema: list[str], root: str, *, in_unity: bool) -> list[str]:
    # (A path without a scheme would be looked for in the file system that is Spark's default, such as HDFS.)
    place = root if "://" in root else f"file://{root}"
    name = ".".join(map(_in_backticks, schema))
    found = [] if in_unity else [_BINDS_PARAMETERS]
    found += [f"CREATE SCHEMA IF NOT EXISTS {name}", f"USE SCHEMA {name}" if in_unity else f"USE {name}"]
    for table in ALL_TABLES:
        location = _spark_text(f"{place}/{table.name}")
        found.append(f"CREATE TABLE IF NOT EXISTS {_in_backticks(table.name)} USING delta LOCATION {location}")
        if in_unity:
            # Unity Catalog keeps a copy of the columns, which does not follow the log by itself.
            found.append(f"MSCK REPAIR TABLE {_in_backticks(table.name)} SYNC METADATA")
    for view, sql in VIEWS.items():
        columns = ",\n  ".join(
            f"{_in_backticks(c.name)} COMMENT {_spark_text(c.comment)}" for c in _table_of(view).columns
        )
        head = (
            f"CREATE OR REPLACE VIEW {_in_backticks(view)} (\n  {columns}\n)\nCOMMENT {_spark_text(_comment_of(view))}"
        )
        found.append(f"{head}\nAS {sql}")
    return found


def _duckdb(schema: list[str], root: str) -> list[str]:
    name = ".".join(map(_in_quotes, schema))
    found = ["INSTALL delta", "LOAD delta", f"CREATE SCHEMA IF NOT EXISTS {name}", f"USE {name}"]
    sources, comments = dict(VIEWS), {view: _comment_of(view) for view in VIEWS}
    for table in ALL_TABLES:
        # (By name: a view of `SELECT *` fails as soon as its table has one more column.)
        columns = ", ".join(_in_quotes(column.name) for column in table.columns)
        place = _duckdb_text(f"{root}/{table.name}")
        sources[table.name] = f"SELECT {columns} FROM delta_scan({place})"  # noqa: S608
        comments[table.name] = table.comment
    for view in (*(table.name for table in ALL_TABLES), *VIEWS):
        found.append(f"CREATE OR REPLACE VIEW {_in_quotes(view)} AS {sources[view]}")
        found.append(f"COMMENT ON VIEW {_in_quotes(view)} IS {_duckdb_text(comments[view])}")
    return found


def _table_of(view: str) -> Table:
    return table_named(view.removesuffix("_current"))


def _comment_of(view: str) -> str:
    table = _table_of(view)
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
