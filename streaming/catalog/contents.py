"""What a lake holds, and the statements that register it elsewhere: `evenkeel tables`.

What each table holds is read from its Delta log: no data file is opened where the log knows the number of rows.

A table is registered with nothing but its location. Columns, comments, partitioning and properties are in its Delta
log, where the engines find them. Statements that repeated them would fail for each difference in a comment or a
property (`DELTA_CREATE_TABLE_SCHEME_MISMATCH` of Delta 4.4), so for every table that an older release has created.

Managed tables are left out: only their catalog may write them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table as Grid

from streaming.exceptions import EvenkeelError, SetupError
from streaming.stores import cause_of
from streaming.tables import ALL_TABLES, DAY, TABLES, VIEWS, OpenedTable, Table, table_named
from streaming.terminal import age, visible
from streaming.times import utc

TableState = Literal["ok", "missing", "unreadable"]


class LakeIncompleteError(EvenkeelError):
    """Tables of a lake cannot be read, or are gone; its text names them."""


@dataclass(frozen=True, slots=True)
class Contents:
    """One table of a lake.

    Attributes:
        table: Its name.
        state: ok, missing (there is no such table) or unreadable; in the last two cases everything below but `reason`
            is None.
        reason: Why it is unreadable; None otherwise.
        rows: Rows.
        files: Data files of the newest version.
        size_bytes: Their size.
        columns: Names of its columns in the log, in order; an older release may have created fewer.
        oldest_day: First `event_date`; None where there is no row with one.
        newest_day: Last `event_date`, likewise.
        version: Newest version of the Delta table.
        newest_commit: When that was committed, by the writer's clock, UTC; None where the log does not say.
        newest_round_time: Newest `round_time`, of whatever cluster, UTC; None where there is no row with one.
        oldest_round_time: Oldest `round_time` that is kept, likewise.
    """

    table: str
    state: TableState
    reason: str | None = None
    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    columns: tuple[str, ...] | None = None
    oldest_day: date | None = None
    newest_day: date | None = None
    version: int | None = None
    newest_commit: datetime | None = None
    newest_round_time: datetime | None = None
    oldest_round_time: datetime | None = None


def contents(lake: str) -> list[Contents]:
    """What a lake holds, one entry per table in the order of `ALL_TABLES`; a table that cannot be read is one, too.

    Args:
        lake: Folder or URI.
    """
    return [_contents_of(lake.rstrip("/"), table) for table in ALL_TABLES]


def faults(found: Sequence[Contents]) -> list[Contents]:
    """The tables that cannot be read, or should be there and are not.

    The job creates all tables when it starts, those of other writers as well (`DeltaLake.create`). Where one of its own
    is there, a missing table was deleted, or came with a release whose job has not run yet.
    """
    of_job = {table.name for table in TABLES}
    has_job_run = any(one.state != "missing" for one in found if one.table in of_job)
    return [one for one in found if one.state == "unreadable" or (one.state == "missing" and has_job_run)]


def behind(found: Sequence[Contents]) -> list[str]:
    """The tables that are not there, or lack a column of this release; unreadable ones are left out."""
    return [
        one.table
        for one in found
        if one.state != "unreadable"
        and not {column.name for column in table_named(one.table).columns} <= set(one.columns or ())
    ]


def _contents_of(lake: str, table: Table) -> Contents:
    try:
        opened = OpenedTable(lake, table)
        if opened.refresh():
            return _described(opened)
        return Contents(table.name, "missing")
    except EvenkeelError as error:
        return Contents(table.name, "unreadable", str(error))
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        return Contents(table.name, "unreadable", cause_of(error))


def _described(opened: OpenedTable) -> Contents:
    files, table = opened.files(), opened.table
    # Files of which the log does not say how many rows they have, as of a writer without statistics, are asked.
    untold = [file for file in files if file.rows is None]
    asked = opened.rows(untold).count_rows() if untold else 0
    times = [time for file in files for time in (file.oldest, file.newest) if time is not None]
    days = [file.day for file in files if file.day is not None]
    if DAY not in table.partition_by:
        days = [time.date() for time in times]
    rounds = times if table.time == "round_time" else []
    return Contents(
        table=table.name,
        state="ok",
        rows=asked + sum(file.rows or 0 for file in files),
        files=len(files),
        size_bytes=sum(file.size for file in files),
        columns=tuple(field.name for field in opened.delta.schema().fields),
        oldest_day=min(days, default=None),
        newest_day=max(days, default=None),
        version=opened.delta.version(),
        newest_commit=_committed(opened.delta),
        newest_round_time=max(rounds, default=None),
        oldest_round_time=min(rounds, default=None),
    )


def _committed(opened: DeltaTable) -> datetime | None:
    newest = next(iter(opened.history(1)), {})
    ms = newest.get("timestamp")
    if ms is None or newest.get("version") != opened.version():
        return None
    return utc(ms)


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
    # A path without a scheme would be looked for in the file system that is Spark's default, such as HDFS.
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
        # By name: a view of `SELECT *` fails as soon as its table has one more column.
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


def list_tables(
    lake: str, console: Console, *, as_json: bool = False, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> None:
    """Print a line for each table of a lake, or all of them as one JSON object.

    Args:
        lake: Folder or URI.
        console: Where to print.
        as_json: Print JSON: `lake` and `tables`, with sizes in bytes, and days and times in ISO 8601, UTC.
        now: The clock, aware, for ages.

    Raises:
        SetupError: There is no table in the lake.
        LakeIncompleteError: Everything is printed, and a table is unreadable, or deleted.
    """
    found = _there(lake)
    if as_json:
        document = {"lake": lake, "tables": list(map(_entry, found))}
        console.out(json.dumps(document, indent=2), highlight=False)
    else:
        _show(found, console, now())
    if wrong := faults(found):
        raise LakeIncompleteError(_sentence(lake, wrong))


def print_ddl(lake: str, dialect: Dialect, schema: str, write: Callable[[str], object]) -> None:
    """Print the statements that register a lake's tables and views, each with a semicolon.

    Args:
        lake: Folder or URI.
        dialect: Whose SQL.
        schema: Schema to register them in.
        write: Takes each statement.

    Raises:
        SetupError: There is no table in the lake.
        LakeIncompleteError: A table is unreadable, missing, or of an older release; nothing is printed.
    """
    found = _there(lake)
    if unreadable := [one for one in found if one.state == "unreadable"]:
        raise LakeIncompleteError(_sentence(lake, unreadable))
    if older := behind(found):
        message = (
            f"Missing in {lake}, or of an older release there: {', '.join(older)}. The job creates all tables when it "
            "starts: start it once with this release."
        )
        raise LakeIncompleteError(message)
    for statement in statements(dialect, lake, schema):
        write(f"{statement};")


def _there(lake: str) -> list[Contents]:
    found = contents(lake)
    if all(one.state == "missing" for one in found):
        message = f"There are no tables in {lake}: name the lake with --lake, or in the setting `lake`."
        raise SetupError(message)
    return found


def _show(found: Sequence[Contents], console: Console, now: datetime) -> None:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name, justify in (
        ("table", "left"),
        ("rows", "right"),
        ("files", "right"),
        ("size", "right"),
        ("days", "left"),
        ("newest commit", "right"),
    ):
        grid.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for one in found:
        if one.state == "ok":
            grid.add_row(one.table, *_cells(one, now))
        else:
            grid.add_row(one.table, *("-" for _ in range(3)), one.state, "-")
    console.print(grid, highlight=False)
    for one in found:
        if one.table == "rounds" and (at := one.newest_round_time) is not None:
            console.print(f"Newest round: {at:%Y-%m-%d %H:%M:%S} UTC, {age(now - at)} ago.", highlight=False)


def _cells(one: Contents, now: datetime) -> tuple[str, ...]:
    days = [str(day) for day in (one.oldest_day, one.newest_day) if day is not None]
    return (
        f"{one.rows:,}",
        f"{one.files:,}",
        decimal(one.size_bytes or 0),
        " to ".join(dict.fromkeys(days)) or "-",
        "-" if one.newest_commit is None else f"{age(now - one.newest_commit)} ago",
    )


_UNLISTED = ("columns", "oldest_round_time")


def _entry(one: Contents) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(one).items() if name not in _UNLISTED}
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in shown.items()}


def _sentence(lake: str, wrong: Sequence[Contents]) -> str:
    """A sentence for each reason why tables are not as they should be."""
    reasons: dict[str, list[str]] = {}
    for one in wrong:
        if one.state == "unreadable":
            reasons.setdefault(visible(one.reason or "", 300), []).append(one.table)
    lines = [
        f"Unreadable in {lake}: {', '.join(tables)} ({reason}). Check that the folder of each is whole and readable."
        for reason, tables in reasons.items()
    ]
    if gone := [one.table for one in wrong if one.state == "missing"]:
        lines.append(f"Missing in {lake}: {', '.join(gone)}. The job creates them when it starts again.")
    return "\n".join(lines)
