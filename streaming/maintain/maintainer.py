"""Maintains a lake piece by piece, for as long as the caller allows: finds a piece, does it, and says what was done.

Each piece is at most one commit to one table, by Delta's own library. The lake is consistent between two pieces, and
after a `kill -9` inside one: the next call starts from what is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import partial

import pyarrow as pa
from deltalake import CommitProperties

from streaming.config import Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.maintain.advising import Advising
from streaming.maintain.engines import (
    DeltaRs,
    Done,
    Engine,
    MaintenanceError,
    days_to_join,
    expired,
    one_sentence,
    today_of,
)
from streaming.maintain.rollups import ROLLED_UP, RollUps
from streaming.tables import ALL_TABLES, DAY, RETENTION_COMMIT, OpenedTable, Table, table_named

# A day that is still written is joined once an hour: a reader of the present meets at most 360 files of it, at a batch
# every ten seconds. Late rows have a closed day joined again, but not more than once a day.
_OPEN_EVERY_S = 3_600
_CLOSED_EVERY_S = 86_400

# Vacuum, a checkpoint and the cleaning of the log.
_UPKEEP_EVERY_S = 86_400

# Retention waits for history, but not for ever: if history fails for a month, the lake must not grow with it.
_LONGEST_WAIT = timedelta(days=30)

# Below this a retention makes no sense: what lives repeats its rows once a day.
_LEAST_DAYS = 3

# A shorter heartbeat of now may have been a longer one when the rows were written; the default is 10 minutes.
_LEAST_HEARTBEAT_MS = 600_000


def _always() -> bool:
    return True


class Maintainer:
    """Maintains one lake. Not thread-safe; one at a time for each lake (`streaming.process.MAINTAINER`)."""

    def __init__(
        self,
        lake: str,
        keep_days: Mapping[str, int] | None = None,
        carry_ms: int = 1_260_000,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        engine: Engine | None = None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            keep_days: Days to keep by table, where they are not the table's own (`Table.keep_days`).
            carry_ms: For how long a row of `lag` or `group_health` says what holds, ms of time between rounds: two
                heartbeats and a minute.
            now: The clock, ms since the epoch.
            engine: Compacts and vacuums; None does so by delta-rs.
        """
        self._lake = lake.rstrip("/")
        self._keep = {table.name: table.keep_days for table in ALL_TABLES} | dict(keep_days or {})
        self._now = now
        self._engine = engine or DeltaRs()
        self._open: dict[str, OpenedTable] = {}
        self._seen: set[str] = set()
        self._joined: dict[tuple[str, date | None], float] = {}
        self._kept_up: dict[str, float] = {}
        self._rollups = RollUps(self._lake, self._opened, carry_ms, now)
        self._advising = Advising(self._lake, self._opened, self._keep)

    def work(self, may_go_on: Callable[[], bool] = _always) -> Iterator[Done]:
        """Do pieces of work, and yield each when it is done, until nothing is left or the caller stops.

        A table that fails again and again yields its first failure alone.

        Args:
            may_go_on: Asked before each piece; a piece that is due waits for the next call when it says no.

        Raises:
            MaintenanceError: A table could not be maintained, or several; all others are.
        """
        failed: list[str] = []
        for name, pieces in self._all_pieces():
            if not may_go_on():
                return
            for is_last in (False, True):
                self._seen.clear()
                began = time.monotonic()
                try:
                    for done in pieces():
                        pa.default_memory_pool().release_unused()
                        self._seen.clear()
                        yield replace(done, seconds=time.monotonic() - began)
                        if not may_go_on():
                            return
                        began = time.monotonic()
                    break
                except EvenkeelError as error:
                    # A table may have been deleted, and created anew, since it was opened: only the second failure
                    # counts. Then the other tables come first, which a broken one must not keep from being maintained.
                    self._open.clear()
                    if is_last and name not in failed:
                        failed.append(name)
                        yield Done(name, "failure", failure=str(error))
        if failed:
            message = f"Not maintained: {', '.join(failed)}."
            raise MaintenanceError(message)

    def _all_pieces(self) -> Iterator[tuple[str, Callable[[], Iterator[Done]]]]:
        # Compaction leaves history fewer files to read, and history lets go of what retention waits for.
        for table in ALL_TABLES:
            yield table.name, partial(self._join, table)
        yield "history", partial(self._compute, self._rollups)
        yield "advice", partial(self._compute, self._advising)
        for table in ALL_TABLES:
            yield table.name, partial(self._retain, table)
            yield table.name, partial(self._upkeep, table)

    def _opened(self, name: str) -> OpenedTable:
        """A table as it is at the beginning of a piece; without files where there is none."""
        with one_sentence(f"{self._lake}/{name}"):
            opened = self._open.setdefault(name, OpenedTable(self._lake, table_named(name)))
            if name not in self._seen:
                opened.refresh()
                self._seen.add(name)
        return opened

    def _today(self) -> date:
        days = [file.day for file in self._opened("rounds").files() if file.day is not None]
        return today_of(self._now(), max(days, default=None))

    def _first_kept(self, table: Table) -> date | None:
        """The first day that is kept; None keeps all. Retention waits for the history of what it deletes."""
        keep = self._keep[table.name]
        if keep is None or DAY not in table.partition_by:
            return None
        first = self._today() - timedelta(days=keep)
        if table.name not in ROLLED_UP:
            return first
        owed = [day for day in self._rollups.owed() if day >= first - _LONGEST_WAIT]
        return min([first, *owed])

    def _join(self, table: Table) -> Iterator[Done]:
        opened, today = self._opened(table.name), self._today()
        for day, small in days_to_join(opened.files()).items():
            every = _OPEN_EVERY_S if day is None or day >= today else _CLOSED_EVERY_S
            now, before = time.monotonic(), self._joined.get((table.name, day))
            if before is None or now - before >= every:
                with one_sentence(opened.uri):
                    self._engine.compact(opened, day)
                self._joined[table.name, day] = now
                yield Done(table.name, "compaction", day, files=len(small), rows=sum(f.rows or 0 for f in small))

    def _retain(self, table: Table) -> Iterator[Done]:
        opened = self._opened(table.name)
        with one_sentence(opened.uri):
            first = self._first_kept(table)
            if first is not None and (gone := expired(opened.files(), first)):
                mark = CommitProperties(custom_metadata=dict(RETENTION_COMMIT))
                opened.delta.delete(f"{DAY} < '{first}'", commit_properties=mark)
                yield Done(table.name, "retention", first, files=len(gone), rows=sum(file.rows or 0 for file in gone))

    def _upkeep(self, table: Table) -> Iterator[Done]:
        now, before = time.monotonic(), self._kept_up.get(table.name)
        opened = self._opened(table.name)
        if not opened.is_there or (before is not None and now - before < _UPKEEP_EVERY_S):
            return
        with one_sentence(opened.uri):
            paths = opened.delta.vacuum(dry_run=True, full=True)
            size = sum(found.size or 0 for found in opened.folder.get_file_info(paths)) if paths else 0
            if paths:
                self._engine.vacuum(opened)
                opened.refresh()
            opened.delta.create_checkpoint()
            opened.delta.cleanup_metadata()
        self._kept_up[table.name] = now
        yield Done(table.name, "upkeep", files=len(paths), size=size)

    def _compute(self, computes: RollUps | Advising) -> Iterator[Done]:
        with one_sentence(self._lake):
            yield from computes.work(self._today)


def maintainer_of(settings: Settings, engine: Engine | None = None) -> Maintainer:
    """A maintainer with the user's settings; arguments as of `Maintainer`.

    Raises:
        SetupError: A setting names no table, or keeps one for too short a time.
    """
    for name, days in settings.maintenance.keep_days.items():
        names = [table.name for table in ALL_TABLES]
        if name not in names:
            message = (
                f"The setting maintenance.keep_days names {name}, which is not a table: use one of {', '.join(names)}."
            )
            raise SetupError(message)
        if days < _LEAST_DAYS:
            message = (
                f"The setting maintenance.keep_days keeps {name} for {days} days, but the present lies in the last "
                f"{_LEAST_DAYS}: keep it for longer."
            )
            raise SetupError(message)
    carry_ms = 2 * max(settings.job.heartbeat_ms, _LEAST_HEARTBEAT_MS) + 60_000
    return Maintainer(settings.lake, settings.maintenance.keep_days, carry_ms, engine=engine)
