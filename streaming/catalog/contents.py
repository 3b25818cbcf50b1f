"""What each table of a lake holds, by its Delta log: no data file is opened where the log knows the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.exceptions import EvenkeelError
from streaming.stores import cause_of
from streaming.tables import ALL_TABLES, DAY, TABLES, OpenedTable, Table, table_named
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
