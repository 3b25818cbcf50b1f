"""The lake: a folder (or object store URI) with one Delta table per name, written without Spark.

Every commit goes through delta-rs: five tables in 0.13 s where Spark's writer needs 4 s. Each has Delta's own
transaction id, also where the tasks of a large batch have written the files (`streaming/job/batch.py`).

Rows of the core first become Arrow columns: ms become TIMESTAMP, days DATE, lists structs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from streaming.lifecycle import room_log
from streaming.stores import cause_of, on_object_store
from streaming.tables.data_file import LakeUnwritableError
from streaming.tables.schema import ALL_TABLES, Column, Table, table_named
from streaming.times import DAY_MS

# 9999-12-31, the last day that every engine and Python can show. A timestamp in a broken record can be any int64:
# what is no time becomes NULL.
_LAST_DAY = 2_932_896
_LAST_MS = (_LAST_DAY + 1) * DAY_MS - 1

# How long an append waits for a store: a batch that fails costs the job a restart. A lease lasts no longer.
_PATIENCE_S = 60.0
_PAUSE_S = 1.0

# Retention and compaction can commit between two attempts; so many in a row mean that something else is at work.
_ATTEMPTS = 20

_LOG = room_log(__name__)

_Made = TypeVar("_Made")

_BOUNDS = {pa.int32(): (-(2**31), 2**31 - 1), pa.int64(): (-(2**63), 2**63 - 1)}


def to_arrow(table: Table, rows: list[list[Any]]) -> pa.Table:
    """Build the Arrow table of rows whose fields stand in the order of the columns.

    Without the columns' comments: delta-rs refuses to append to a table that was created with another wording.
    """
    values = zip(*rows, strict=True) if rows else ([] for _ in table.columns)
    arrays = [_array(column, list(cells)) for column, cells in zip(table.columns, values, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in table.columns])


def named_to_arrow(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The same of rows by name; a column that a row does not name is NULL."""
    return to_arrow(table, [[row.get(column.name) for column in table.columns] for row in rows])


def _array(column: Column, cells: list[Any]) -> pa.Array:
    kind = column.type.arrow
    if pa.types.is_timestamp(kind):
        return pa.array([_within(ms, _LAST_MS) for ms in cells], pa.timestamp("ms", "UTC")).cast(kind)
    if pa.types.is_date(kind):
        return pa.array([_within(day, _LAST_DAY) for day in cells], pa.int32()).cast(kind)
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        times = {place for place, field in enumerate(kind.value_type) if pa.types.is_timestamp(field.type)}
        cells = [cell if cell is None else [_struct(item, times) for item in cell] for cell in cells]
    try:
        return pa.array(cells, kind)
    except (pa.ArrowInvalid, OverflowError):
        # Numbers in hostile records can be beyond any type (a step from -2^63 to 2^63 - 1): they end at its bounds.
        if kind not in _BOUNDS:
            raise
        low, high = _BOUNDS[kind]
        return pa.array([None if cell is None else min(max(cell, low), high) for cell in cells], kind)


def _struct(item: Iterable[Any], times: Collection[int]) -> tuple[Any, ...]:
    """The fields of a struct; those at the places of times are ms."""
    if not times:
        return tuple(item)
    return tuple(_micros(value) if place in times else value for place, value in enumerate(item))


def _within(value: int | None, last: int) -> int | None:
    """A time or a day; None for what is none."""
    if value is not None and 0 <= value <= last:
        return value
    return None


def _micros(ms: int) -> int | None:
    return None if _within(ms, _LAST_MS) is None else ms * 1000


class Lake(Protocol):
    """Where rows go."""

    def append(self, table: str, rows: list[list[Any]] | pa.Table, writer: str, batch: int) -> int:
        """Append the rows of one batch to one table, once.

        Args:
            table: Name of the table.
            rows: Rows, fields in the order of the table's columns, in the core's units; or as `to_arrow` makes them.
            writer: Id of the writing query, stable over its checkpoint's life.
            batch: Number of the batch.

        Returns:
            Rows written; 0 when this batch was written before.
        """


class DeltaLake:
    """A lake on delta-rs.

    Attributes:
        root: Folder or URI.
    """

    def __init__(self, root: str, *, check: Callable[[], None] = lambda: None) -> None:
        """Prepare; nothing is read yet.

        Args:
            root: Folder or URI.
            check: Called before each append; raises where this process may not write any more (`only_one`).
        """
        self.root, self._check = root.rstrip("/"), check
        self._open: dict[str, DeltaTable] = {}

    def path(self, table: str) -> str:
        """Location of a table."""
        return f"{self.root}/{table}"

    def create(self, tables: Iterable[Table] = ALL_TABLES) -> None:
        """Create the tables that are not there; those that are stay as they are.

        The job creates all of them when it starts, those of other writers as well: so a query over any of them runs in
        every engine from the first start on. The others create only their own, as they may start before it: tables of
        the job without its rows would hide from it that they were deleted.

        Columns that a later release appended are added to an older table. Others may create the same at the same time.

        Raises:
            CommitFailedError: Others change a table all the time.
            LakeUnwritableError: A table cannot be read or created.
        """
        for table in tables:
            with store_errors(self.path(table.name)):
                # Somebody else may create it, or add its columns, after it was looked at.
                _again(partial(self._create, table))

    def _create(self, table: Table) -> None:
        try:
            existing = DeltaTable(self.path(table.name))
        except TableNotFoundError:
            DeltaTable.create(
                self.path(table.name),
                schema=table.arrow_schema,
                mode="ignore",
                partition_by=list(table.partition_by) or None,
                name=table.name,
                description=table.comment,
                configuration=dict(table.properties),
            )
            return
        known = {field.name for field in existing.schema().fields}
        missing = [c for c in table.columns if c.name not in known]
        if missing:
            added = pa.schema([table.arrow_schema.field(c.name) for c in missing])
            existing.alter.add_columns(list(Schema.from_arrow(added).fields))

    def append(self, table: str, rows: list[list[Any]] | pa.Table, writer: str, batch: int) -> int:
        """Append once; see `Lake.append`. A store that is away is waited for, for a minute.

        Raises:
            LakeUnwritableError: A store could not be written.
        """
        columns = rows if isinstance(rows, pa.Table) else to_arrow(table_named(table), rows)
        if self._once(table, columns, writer, batch):
            return len(columns)
        return 0

    def add_files(self, table: str, files: list[AddAction], writer: str, batch: int) -> bool:
        """Append files that are written already (`new_files`), in one commit, once; as `append`.

        Returns:
            Whether the table did not have the batch. (If it did, vacuum deletes the files.)

        Raises:
            LakeUnwritableError: A store could not be written.
        """
        return self._once(table, files, writer, batch)

    def _once(self, table: str, what: pa.Table | list[AddAction], writer: str, batch: int) -> bool:
        app = application(table, writer)

        def attempt() -> bool:
            target = self._opened(table)
            # delta-rs records a transaction id but does not skip a repeated one by itself: that is ours to ask.
            is_written = partial(_has_transaction, target, app, batch)
            return append_once(target, what, is_written, [Transaction(app, batch)])

        return patiently(self.path(table), attempt, self._check)

    def is_written(self, table: str, writer: str, batch: int) -> bool:
        """Whether the table has the rows of a batch, asked before they are written; arguments as of `Lake.append`.

        Raises:
            LakeUnwritableError: A store could not be read.
        """
        self._check()
        with store_errors(self.path(table)):
            target = self._opened(table)
            target.update_incremental()
            return _has_transaction(target, application(table, writer), batch)

    def _opened(self, table: str) -> DeltaTable:
        if table not in self._open:
            self._open[table] = DeltaTable(self.path(table))
        return self._open[table]


def application(table: str, writer: str) -> str:
    """The id under which a table counts the batches of a writer (Delta's `txn.appId`)."""
    return f"{writer}/{table}"


def alerter_place(cluster: str) -> str:
    """The id under which `alerts` keeps the number of the round up to which a cluster's alerts are decided."""
    return f"alerts/{cluster}/round"


def _has_transaction(table: DeltaTable, app: str, batch: int) -> bool:
    written = table.transaction_version(app)
    return written is not None and written >= batch


@contextmanager
def store_errors(uri: str) -> Iterator[None]:
    """Turn what fails with a table on an object store into one sentence; errors of folders pass as they are.

    Raises:
        LakeUnwritableError: A request failed. (Without the error behind it, which can quote what a store has answered.)
    """
    try:
        yield
    except (OSError, DeltaError) as error:
        if not on_object_store(uri):
            raise
        message = f"The table {uri} cannot be written: {cause_of(error)}."
        raise LakeUnwritableError(message) from None


def patiently(uri: str, attempt: Callable[[], _Made], check: Callable[[], None] = lambda: None) -> _Made:
    """Try to write to a table until its store has answered, for a minute.

    Args:
        uri: Where the table lies; on a folder errors pass as they are.
        attempt: Writes; may be called again after it has failed.
        check: Called before each attempt; raises where this process may not write any more.

    Raises:
        LakeUnwritableError: The store could not be written.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        check()
        try:
            with store_errors(uri):
                return attempt()
        except LakeUnwritableError as error:
            if time.monotonic() >= until:
                raise
            _LOG.warning("%s Trying again.", error)
            time.sleep(_PAUSE_S)


def append_once(
    table: DeltaTable,
    rows: pa.Table | list[AddAction],
    is_written: Callable[[], bool],
    transactions: Sequence[Transaction] = (),
) -> bool:
    """Append rows in one commit; returns whether they were not there already.

    delta-rs refuses an append when another commit has deleted rows since the table was looked at, as retention does,
    although neither has read what the other wrote. Then the table is looked at again.

    Args:
        table: The table; it is brought up to date.
        rows: The rows, or the files in which they lie already.
        is_written: Whether the table has them, by what it knows of itself; asked before each attempt.
        transactions: Transaction ids of the commit.

    Raises:
        CommitFailedError: Other programs delete rows all the time.
        OSError: The store does not answer; the commit may have been made all the same.
    """

    def attempt() -> bool:
        table.update_incremental()
        if is_written():
            return False
        properties = CommitProperties(app_transactions=list(transactions))
        if isinstance(rows, pa.Table):
            write_deltalake(table, widened(rows, table), mode="append", commit_properties=properties)
        else:
            columns = table.metadata().partition_columns
            table.create_write_transaction([*rows], "append", table.schema(), columns, commit_properties=properties)
        return True

    return _again(attempt)


def append_created(lake: str, tables: Iterable[Table], table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows by name to a table that may have to be created first, with those that belong to it.

    Raises:
        LakeUnwritableError: A store could not be written.
    """
    to = DeltaLake(lake)

    def attempt() -> bool:
        to.create(tables)
        return append_once(DeltaTable(to.path(table.name)), named_to_arrow(table, rows), lambda: False)

    patiently(to.path(table.name), attempt)


def _again(commit: Callable[[], _Made]) -> _Made:
    """Commit; once more after each commit of others that was in the way."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(CommitFailedError):
            return commit()
    return commit()


def widened(rows: pa.Table, table: DeltaTable) -> pa.Table:
    """The same rows with NULL in the columns of the table that they do not have, of a newer release or a user's own.

    delta-rs 1.6.6 refuses rows with fewer columns than the table has.
    """
    if all(field.name in rows.column_names for field in table.schema().fields):
        return rows
    for field in pa.schema(table.schema()):
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows
