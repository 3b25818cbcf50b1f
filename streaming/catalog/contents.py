"""What each table of a lake holds, by its Delta log: no data file is opened where the log knows the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from streaming.exceptions import EvenkeelError
from streaming.stores import cause_of
from streaming.tables import ALL_TABLES, DAY, TABLES, Table, all_rows, refuse_features, table_named

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
        size: Their bytes.
        columns: Names of its columns in the log, in order; an older release may have created fewer.
        oldest_day: First `event_date`; None where there is no row with one.
        newest_day: Last `event_date`, likewise.
        version: Newest version of the Delta table.
        newest_commit: When that was committed, by the writer's clock, UTC; None where the log does not say.
        oldest_round_time: Oldest `round_time` that is kept, of whatever cluster, UTC; None where there is no row with
            one.
        newest_round_time: Newest `round_time`, likewise.
    """

    table: str
    state: TableState
    reason: str | None = None
    rows: int | None = None
    files: int | None = None
    size: int | None = None
    columns: tuple[str, ...] | None = None
    oldest_day: date | None = None
    newest_day: date | None = None
    version: int | None = None
    newest_commit: datetime | None = None
    oldest_round_time: datetime | None = None
    newest_round_time: datetime | None = None


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
    uri = f"{lake}/{table.name}"
    try:
        opened = DeltaTable(uri)
        refuse_features(opened, uri)
        return _described(table, opened, uri)
    except TableNotFoundError:
        return Contents(table.name, "missing")
    except EvenkeelError as error:
        return Contents(table.name, "unreadable", str(error))
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        reason = cause_of(error)
        return Contents(table.name, "unreadable", reason)


def _described(table: Table, opened: DeltaTable, uri: str) -> Contents:
    actions = pa.table(opened.get_add_actions(flatten=True))
    oldest, newest = _days(actions)
    return Contents(
        table=table.name,
        state="ok",
        rows=_rows(table, opened, uri, actions),
        files=actions.num_rows,
        size=pc.sum(actions["size_bytes"]).as_py() or 0,
        columns=tuple(field.name for field in opened.schema().fields),
        oldest_day=oldest,
        newest_day=newest,
        version=opened.version(),
        newest_commit=_committed(opened),
        oldest_round_time=_aware(_extreme(actions, "min.round_time", "min")),
        newest_round_time=_aware(_extreme(actions, "max.round_time")),
    )


def _rows(table: Table, opened: DeltaTable, uri: str, actions: pa.Table) -> int:
    """Number of rows; files of which the log does not say it, as of a writer without statistics, are asked."""
    if not actions.num_rows:
        return 0
    told: int = pc.sum(actions["num_records"]).as_py() or 0 if "num_records" in actions.column_names else 0
    if "num_records" in actions.column_names and not actions["num_records"].null_count:
        return told
    asked: int = all_rows(table, opened, uri, lambda file: file.get("num_records") is None).count_rows()
    return told + asked


def _days(actions: pa.Table) -> tuple[date | None, date | None]:
    partition = f"partition.{DAY}"
    if partition in actions.column_names:
        return _day(_extreme(actions, partition, "min")), _day(_extreme(actions, partition))
    return _day(_extreme(actions, f"min.{DAY}", "min")), _day(_extreme(actions, f"max.{DAY}"))


def _extreme(actions: pa.Table, column: str, which: Literal["min", "max"] = "max") -> Any:
    """The least or greatest value of a column of the log; None where there is no such column, or only NULL."""
    if column not in actions.column_names:
        return None
    return pc.min_max(actions[column]).as_py()[which]


# (Statistics are typed by the table's schema; a table whose column has another type has them as texts.)
def _day(value: date | str | None) -> date | None:
    return date.fromisoformat(value) if isinstance(value, str) else value


def _aware(value: datetime | str | None) -> datetime | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return None if value is None else value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)


def _committed(opened: DeltaTable) -> datetime | None:
    newest = next(iter(opened.history(1)), {})
    ms = newest.get("timestamp")
    return None if ms is None or newest.get("version") != opened.version() else datetime.fromtimestamp(ms / 1000, UTC)
