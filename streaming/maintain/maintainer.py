"""Maintains a lake piece by piece, for as long as the caller allows.

Each piece is one commit to one table. The lake is consistent between two pieces, and after a `kill -9` inside one: the
next call starts from what is there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError

from streaming.maintain.delta_table import MaintainedTable, open_table
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.plan import Compaction, Expiry, Limits, all_pieces, next_piece, today_of, wants_checkpoint
from streaming.maintain.present import Living, living_groups, rows_that_stay
from streaming.maintain.rewrite import read
from streaming.tables import ALL_TABLES, VIEWS, Table, table_named

# What is to be vacuumed changes with the clock, in hours: a caller that comes every few seconds need not list a folder.
_VACUUM_EVERY_S = 3_600


@dataclass(frozen=True, slots=True)
class Done:
    """One piece of work that was done.

    Attributes:
        table: Name of the table.
        what: compaction, retention, vacuum or checkpoint.
        day: Its day; None for vacuum and checkpoint.
        files: Files read or deleted.
        size: Their bytes.
        rows: Rows read; 0 for vacuum and checkpoint.
        rows_after: Rows that are left of them.
        size_after: Their bytes.
        seconds: How long it took.
    """

    table: str
    what: str
    day: date | None = None
    files: int = 0
    size: int = 0
    rows: int = 0
    rows_after: int = 0
    size_after: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """A table, and what the next run would do to it.

    Attributes:
        table: Name of the table.
        files: Files.
        size: Bytes.
        rows: Rows.
        keep_days: Days that are kept.
        compactions: Pieces of compaction.
        compacted_files: Files that they would join.
        compacted_size: Bytes of those.
        expired_days: Days past their time that would be looked at.
        expired_rows: Rows of those days; some of them may be the present.
        expired_size: Their bytes.
        vacuumed_files: Files that vacuum would delete.
        vacuumed_size: Their bytes.
        checkpoint: A checkpoint of the log would be written.
    """

    table: str
    files: int
    size: int
    rows: int
    keep_days: int
    compactions: int
    compacted_files: int
    compacted_size: int
    expired_days: int
    expired_rows: int
    expired_size: int
    vacuumed_files: int
    vacuumed_size: int
    checkpoint: bool


class Maintainer:
    """Maintains one lake. Not thread-safe; one at a time for each lake (`streaming.process.MAINTAINER`)."""

    def __init__(
        self,
        lake: str,
        keep_days: Mapping[str, int] | None = None,
        limits: Limits | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            keep_days: Days to keep by table, where they are not the table's own (`Table.retention`).
            limits: Bounds of a piece; None for the defaults.
            now: The clock, ms since the epoch.
        """
        self._lake = lake.rstrip("/")
        self._keep = {table.name: table.retention.days for table in ALL_TABLES} | dict(keep_days or {})
        self._limits = limits or Limits()
        self._now = now
        self._open: dict[str, MaintainedTable] = {}
        self._waiting: deque[Table] = deque()
        self._vacuumed: dict[str, float] = {}

    def work(self, seconds: float | None = None) -> Iterator[Done]:
        """Do pieces of work, and yield each when it is done, until nothing is left or the time is over.

        The next call goes on where this one ended, so that no table waits for another one for ever. No piece begins
        after the time; one that has begun ends, so a call may take longer by a piece (`Limits`).

        Args:
            seconds: The time; None for as long as there is something to do.

        Raises:
            MaintenanceError: A piece could not be done.
            LakeUnreadableError: A table has features that its readers refuse.
        """
        end = None if seconds is None else time.monotonic() + seconds
        if not self._waiting:
            self._waiting.extend(ALL_TABLES)
        while self._waiting and (end is None or time.monotonic() < end):
            table = self._waiting.popleft()
            began = time.monotonic()
            done = self._next(table)
            if done is not None:
                self._waiting.append(table)
                yield _timed(done, time.monotonic() - began)
                continue
            for upkeep in (self._vacuum, self._checkpoint):
                began = time.monotonic()
                if (done := upkeep(table)) is not None:
                    yield _timed(done, time.monotonic() - began)

    def outlook(self) -> list[Outlook]:
        """What `work` would do now, by table, without those that are not there; nothing is changed.

        Raises:
            LakeUnreadableError: A table has features that its readers refuse.
        """
        return [self._outlook_of(table, opened) for table in ALL_TABLES if (opened := self._opened(table)) is not None]

    def _outlook_of(self, table: Table, opened: MaintainedTable) -> Outlook:
        with _told(opened.uri):
            files = opened.files()
            pieces = all_pieces(files, self._today(), self._now(), self._keep[table.name], self._limits)
            joined = [f for p in pieces if isinstance(p, Compaction) for f in p.files]
            expired = [f for p in pieces if isinstance(p, Expiry) for f in p.files]
            vacuumed_files, vacuumed_size = opened.vacuum(dry_run=True)
            return Outlook(
                table=table.name,
                files=len(files),
                size=sum(f.size for f in files),
                rows=sum(f.rows for f in files),
                keep_days=self._keep[table.name],
                compactions=sum(isinstance(p, Compaction) for p in pieces),
                compacted_files=len(joined),
                compacted_size=sum(f.size for f in joined),
                expired_days=sum(isinstance(p, Expiry) for p in pieces),
                expired_rows=sum(f.rows for f in expired),
                expired_size=sum(f.size for f in expired),
                vacuumed_files=vacuumed_files,
                vacuumed_size=vacuumed_size,
                checkpoint=wants_checkpoint(opened.log()),
            )

    def _opened(self, table: Table) -> MaintainedTable | None:
        if table.name not in self._open:
            opened = open_table(self._lake, table)
            if opened is None:
                return None
            self._open[table.name] = opened
        return self._open[table.name]

    def _today(self) -> date:
        rounds = self._opened(table_named("rounds"))
        days = [file.day for file in rounds.files()] if rounds is not None else []
        return today_of(self._now(), max(days, default=None))

    def _next(self, table: Table) -> Done | None:
        opened = self._opened(table)
        if opened is None:
            return None
        with _told(opened.uri):
            files = opened.files()
            now = self._now()
            piece = next_piece(files, self._today(), now, self._keep[table.name], self._limits)
            if piece is None:
                return None
            if isinstance(piece, Compaction):
                rows: pa.Table | None = read(table, piece.files, opened.folder)
            else:
                expired = {file.path for file in piece.files}
                others = [file for file in files if file.path not in expired]
                rows = rows_that_stay(table, piece.files, others, self._living, opened.folder)
            size_after = opened.replace(piece, rows, now)
            return Done(
                table=table.name,
                what="compaction" if isinstance(piece, Compaction) else "retention",
                day=piece.day,
                files=len(piece.files),
                size=sum(f.size for f in piece.files),
                rows=sum(f.rows for f in piece.files),
                rows_after=0 if rows is None else rows.num_rows,
                size_after=size_after,
            )

    def _vacuum(self, table: Table) -> Done | None:
        opened = self._opened(table)
        before = self._vacuumed.get(table.name)
        if opened is None or (before is not None and time.monotonic() - before < _VACUUM_EVERY_S):
            return None
        self._vacuumed[table.name] = time.monotonic()
        with _told(opened.uri):
            files, size = opened.vacuum(dry_run=False)
        return Done(table.name, "vacuum", files=files, size=size) if files else None

    def _checkpoint(self, table: Table) -> Done | None:
        opened = self._opened(table)
        if opened is None:
            return None
        with _told(opened.uri):
            log = opened.log()
            if not wants_checkpoint(log):
                return None
            opened.checkpoint()
        return Done(table.name, "checkpoint", files=log.commits, size=log.commit_bytes)

    @cached_property
    def _living(self) -> Living:
        return Living(self._living_groups, self._living_alerts)

    def _living_groups(self, wanted: pa.Table) -> pa.Table:
        health = self._opened(table_named("group_health"))
        if health is None:
            return wanted.slice(0, 0)
        return living_groups(wanted, health.table, health.files(), health.folder)

    def _living_alerts(self) -> pa.Table:
        alerts = self._opened(table_named("alerts"))
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("alerts", alerts.rows() if alerts else table_named("alerts").arrow_schema.empty_table())
            return connection.sql(f"SELECT alert_id FROM ({VIEWS['alerts_current']})").to_arrow_table()  # noqa: S608


def _timed(done: Done, seconds: float) -> Done:
    return replace(done, seconds=seconds)


@contextmanager
def _told(uri: str) -> Iterator[None]:
    """Turn what delta-rs, Arrow and DuckDB raise into one sentence."""
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException, duckdb.Error) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = (
            f"The table {uri} could not be maintained ({reason[:300]}): check that its folder is whole and writable "
            "and its disk not full, and try again."
        )
        raise MaintenanceError(message) from error
