"""Maintains a lake piece by piece, for as long as the caller allows: finds a piece, does it, and says what was done.

Each piece is at most one commit to one table. The lake is consistent between two pieces, and after a `kill -9` inside
one: the next call starts from what is there. What to do is decided elsewhere (`plan.py`, `rollups.py`), and so are
whose turn it is (`turns.py`) and what fits into a time (`speed.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from functools import cache

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError

from streaming.exceptions import EvenkeelError
from streaming.maintain.advising import Advised, Advising
from streaming.maintain.done import Done
from streaming.maintain.engines.engine import Engine, by_engine
from streaming.maintain.exceptions import GroupsUnknownError, MaintenanceError, NotMaintainedError
from streaming.maintain.living import NEEDS_GROUPS, LivingInLake
from streaming.maintain.outlook import Outlook, outlook_of
from streaming.maintain.present import Living, rows_that_stay
from streaming.maintain.rollups import ROLLED_UP, Day, Hour, RollUps
from streaming.maintain.speed import FILE_ROWS, Speed
from streaming.maintain.table.delta_table import MaintainedTable, open_table
from streaming.maintain.table.plan import Compaction, Expiry, Limits, Sorting, next_piece, today_of, wants_checkpoint
from streaming.maintain.table.rewrite import read
from streaming.maintain.table.sorting import GROUP, Slice, Sorters
from streaming.maintain.turns import WorkQueue
from streaming.stores import cause_of
from streaming.tables import ADVICE_TABLES, ALL_TABLES, DAY, HISTORY_TABLES, Table, advice, table_named

# What is to be vacuumed changes with the clock, in hours: a caller that comes every few seconds need not list a folder.
_VACUUM_EVERY_S = 3_600

# What waits for its turn beside the tables: hours and days of history, then days of advice. They come last, because
# compaction leaves them fewer files to read: an hour of a day that was never maintained takes a minute, and seconds
# once its files are joined.
_HISTORY = "history"

# What maintenance writes itself. It may be deleted beside a running job, to be computed again (docs/operations.md),
# which shows when a piece finds files gone: so the first failure counts only if it comes a second time.
_OWN = frozenset({_HISTORY, *(table.name for table in (*HISTORY_TABLES, *ADVICE_TABLES))})

# Retention waits for history, but not for ever: if history fails for a month, the lake must not grow with it.
_LONGEST_WAIT_DAYS = 30

# Where nobody can tell which groups live, retention asks again after so long: as a job tries again what has failed.
_ASK_AGAIN_S = 3_600

_Piece = Compaction | Slice | Expiry | Hour | Day | Advised

# Rows that a slice of a sorting reads for each that it keeps: it takes whole row groups of files that have all groups.
_SLICE_ROWS = 2


class Maintainer:
    """Maintains one lake. Not thread-safe; one at a time for each lake (`streaming.process.MAINTAINER`)."""

    def __init__(
        self,
        lake: str,
        keep_days: Mapping[str, int] | None = None,
        limits: Limits | None = None,
        piece_seconds: float | None = None,
        carry_ms: int = 1_260_000,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        engine: Engine | None = None,
        checkpoints: Mapping[str, str] | None = None,
        told: Callable[[str, str], None] = lambda _table, _reason: None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            keep_days: Days to keep by table, where they are not the table's own (`Table.retention`).
            limits: Bounds of a piece; None for the defaults.
            piece_seconds: How long a piece of compaction should take at most; on a slow machine pieces are smaller than
                the limits allow. None for no bound.
            carry_ms: For how long a row of `lag` or `group_health` says what holds, ms of time between rounds: two
                heartbeats and a minute.
            now: The clock, ms since the epoch.
            engine: Compacts past days, and vacuums; None does so here.
            checkpoints: By cluster, where its checkpoint is, if not in its usual place in the lake.
            told: Called at each failure with the table ("history" for what is rolled up and advised) and the reason.
        """
        self._engine = engine
        self._lake = lake.rstrip("/")
        self._keep = {table.name: table.retention.days for table in ALL_TABLES} | dict(keep_days or {})
        self._limits = limits or Limits()
        self._piece_seconds = piece_seconds
        self._speed = Speed()
        self._now = now
        self._open: dict[str, MaintainedTable] = {}
        self._sorters = Sorters()
        self._turns = WorkQueue([table.name for table in ALL_TABLES], _HISTORY)
        self._tell = told
        self._failed: dict[str, str] = {}
        self._tried_twice: set[str] = set()
        self._held: dict[str, date] = {}
        self._asks_again: float | None = None
        self._vacuumed: dict[str, float] = {}
        self._rollups = RollUps(self._lake, self._named, self._keep, carry_ms, now)
        self._advising = Advising(self._lake, self._named, self._keep)
        living = LivingInLake(self._lake, self._named, self._today, self._keep, checkpoints or {})
        self._living = Living(living.groups, living.alerts)

    def work(self, left: float | None = None, whole: float | None = None) -> Iterator[Done]:
        """Do pieces of work, and yield each when it is done, until nothing is left or the time is over.

        A piece begins when it should be done in the time left. The first one also begins when waiting for more time
        would not help: when it would not fit into the whole gap, or when there is no gap to wait for. The next call
        continues where this one ended, so that no table waits for another one for ever.

        Args:
            left: Seconds left; None for as long as there is something to do.
            whole: Seconds between two batches, of which `left` are left; pieces of compaction are made to fit. None
                where no gap recurs.

        Raises:
            NotMaintainedError: A table could not be maintained, or several; all others are.
        """
        end = None if left is None else time.monotonic() + left
        limits = self._speed.limits_within(self._limits, self._piece_seconds, whole)
        self._turns.begin()
        begun = False
        while self._turns and (end is None or not begun or time.monotonic() < end):
            name = self._turns.next()
            began = time.monotonic()
            released: list[str] = []
            try:
                piece = self._piece(name, limits)
                if piece is None:
                    found = list(self._upkeep(name))
                    if name == _HISTORY:
                        released = self._released()
                elif self._may_begin(piece, end, whole, began, is_first=not begun):
                    found = [self._timed(self._do(name, piece), began)]
                else:
                    self._turns.put_back(name)
                    return
            except EvenkeelError as error:
                # (The other tables first: a broken one must not keep them from being maintained.)
                self._fail(name, error)
                continue
            self._tried_twice.discard(name)
            if piece is not None:
                self._turns.again(name)
            elif released:
                self._turns.also(released)
            begun = begun or bool(found)
            yield from found
        pa.default_memory_pool().release_unused()
        if self._failed and not self._turns:
            (_, reason), *others = self._failed.items()
            self._failed = {}
            also = f" Not maintained either: {', '.join(name for name, _ in others)}." if others else ""
            message = f"{reason}{also}"
            raise NotMaintainedError(message)

    @property
    def has_more(self) -> bool:
        """Whether the last `work` ended because of its time, and there may be more to do."""
        return bool(self._turns)

    def _fail(self, name: str, error: EvenkeelError) -> None:
        """Report a failure, and reopen every table for the next attempt.

        Only its text is kept: an error holds all that its piece has read, which may be a gigabyte.
        """
        # A table may have been deleted, and created again, since it was opened.
        self._open.clear()
        if name in _OWN:
            self._rollups.forget()
            self._advising.forget()
            if name not in self._tried_twice:
                self._tried_twice.add(name)
                self._turns.again(name)
                return
        if isinstance(error, GroupsUnknownError):
            # (All else can be done.)
            self._asks_again = time.monotonic() + _ASK_AGAIN_S
            self._turns.again(name)
        self._failed.setdefault(name, str(error))
        self._tell(name, str(error))

    def outlook(self) -> list[Outlook]:
        """What `work` would do now, by table, without those that are not there; nothing is changed.

        Raises:
            LakeUnreadableError: A table has features that its readers refuse.
        """
        self._look_again()
        found = []
        for table in ALL_TABLES:
            if (opened := self._opened(table)) is not None:
                limits = self._limits_of(table, self._limits)
                with _told(opened.uri):
                    found.append(outlook_of(opened, self._today(), self._now(), self._keep[table.name], limits))
        return found

    def _look_again(self) -> None:
        """One look at each table decides what a piece is, and another one is for doing it."""
        for opened in self._open.values():
            opened.look_again()

    def _opened(self, table: Table) -> MaintainedTable | None:
        if table.name not in self._open:
            with _told(f"{self._lake}/{table.name}"):
                opened = open_table(self._lake, table, keeps=True)
            if opened is None:
                return None
            self._open[table.name] = opened
        return self._open[table.name]

    def _named(self, name: str) -> MaintainedTable | None:
        return self._opened(table_named(name))

    def _today(self) -> date:
        rounds = self._named("rounds")
        days = [file.day for file in rounds.files()] if rounds is not None else []
        return today_of(self._now(), max(days, default=None))

    def _piece(self, name: str, limits: Limits) -> _Piece | None:
        self._look_again()
        if name == _HISTORY:
            with _told(self._lake):
                today = self._today()
                return self._rollups.next(today) or self._advising.next(today)
        opened = self._named(name)
        if opened is None:
            return None
        with _told(opened.uri):
            chosen = self._limits_of(opened.table, limits)
            found = next_piece(
                opened.files(), self._today(), self._now(), self._keep[name], chosen, self._is_held(name)
            )
            return self._sorters.next_slice(opened, found, chosen) if isinstance(found, Sorting) else found

    def _limits_of(self, table: Table, limits: Limits) -> Limits:
        # (Spark's OPTIMIZE has its own order.)
        has_groups = GROUP in table.key and DAY in table.partition_by
        is_sorted = has_groups and self._engine is None and self._sorters.may_sort(table)
        return limits if is_sorted else replace(limits, sort_files=0)

    def _is_held(self, name: str) -> Callable[[date], bool]:
        """Whether retention must wait: for the history of a day, which is noted, or to know which groups live."""
        if name in NEEDS_GROUPS and self._asks_again is not None and time.monotonic() < self._asks_again:
            return lambda _: True
        if name not in ROLLED_UP:
            return lambda _: False
        last = self._today() - timedelta(days=self._keep[name] + _LONGEST_WAIT_DAYS)
        owed = cache(self._rollups.owed)

        def is_held(day: date) -> bool:
            if day < last or day not in owed():
                return False
            self._held[name] = day
            return True

        return is_held

    def _released(self) -> list[str]:
        """Tables whose retention has waited for history that is there now, or never will be."""
        if not self._held:
            return []
        with _told(self._lake):
            owed = self._rollups.owed()
        released = sorted(name for name, day in self._held.items() if day not in owed)
        for name in released:
            del self._held[name]
        return released

    def _do(self, name: str, piece: _Piece) -> Done:
        self._look_again()
        if isinstance(piece, Hour | Day):
            with _told(self._lake):
                written = self._rollups.do(piece)
            hour = piece.start if isinstance(piece, Hour) else None
            of = "group_daily" if isinstance(piece, Day) else "group_hourly"
            return Done(
                of, "history", piece.day, hour, piece.files, rows=piece.rows,
                rows_after=written.rows, size_after=written.size,
            )  # fmt: skip
        if isinstance(piece, Advised):
            with _told(self._lake):
                after, size = self._advising.do(piece)
            return Done(
                "advice", "advice", piece.day, files=piece.files, rows=piece.rows, rows_after=after, size_after=size
            )
        opened = self._named(name)
        assert opened is not None  # noqa: S101 - it has a piece of work
        table = opened.table
        with _told(opened.uri):
            # (An engine is given a day, which rows without one do not have.)
            if isinstance(piece, Compaction) and self._engine is not None and self._is_past(table, piece.partition_day):
                return by_engine(self._engine, opened, piece.day)
            if isinstance(piece, Slice):
                part = self._sorters.step(opened)
                return Done(
                    name, "sorting", piece.sorting.day, files=len(part.replaced),
                    size=sum(f.size for f in part.replaced), rows=piece.rows, rows_after=piece.rows,
                    size_after=part.size,
                )  # fmt: skip
            # (Before a piece is read, not when it is written.)
            opened.refuse_unknown()
            if isinstance(piece, Compaction):
                rows: pa.Table | None = read(table, piece.files, opened.folder)
            else:
                expired = {file.path for file in piece.files}
                others = [file for file in opened.files() if file.path not in expired]
                rows = rows_that_stay(table, piece.files, others, self._living, opened.folder)
            size_after = opened.replace(piece, rows, self._now())
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

    def _is_past(self, table: Table, day: date | None) -> bool:
        # (Sorting a day that is still written would sort it again and again.)
        return DAY in table.partition_by and day is not None and day < self._today()

    def _may_begin(
        self, piece: _Piece, end: float | None, whole: float | None, began: float, *, is_first: bool
    ) -> bool:
        expected, now = self._speed.seconds_of(_weight(piece)), time.monotonic()
        if end is None or now + expected <= end:
            return True
        # (In any gap it takes as long to find the piece as it has now.)
        return is_first and (whole is None or expected > whole - (now - began))

    def _timed(self, done: Done, began: float) -> Done:
        seconds = time.monotonic() - began
        if done.what == "compaction":
            self._speed.note(done.rows, done.files, seconds)
        # Arrow would otherwise keep up to a gigabyte for the next piece.
        pa.default_memory_pool().release_unused()
        return replace(done, seconds=seconds)

    def _upkeep(self, name: str) -> Iterator[Done]:
        if name == _HISTORY or (opened := self._named(name)) is None:
            return
        for upkeep in (self._vacuum, self._checkpoint):
            began = time.monotonic()
            if (done := upkeep(opened)) is not None:
                yield self._timed(done, began)

    def _vacuum(self, opened: MaintainedTable) -> Done | None:
        name = opened.table.name
        before = self._vacuumed.get(name)
        if before is not None and time.monotonic() - before < _VACUUM_EVERY_S:
            return None
        self._vacuumed[name] = time.monotonic()
        with _told(opened.uri):
            if self._engine is None:
                files, size = opened.vacuum(dry_run=False)
            else:
                files, size = opened.vacuum(dry_run=True)
                if files:
                    self._engine.vacuum(opened.uri)
        return Done(name, "vacuum", files=files, size=size) if files else None

    def _checkpoint(self, opened: MaintainedTable) -> Done | None:
        with _told(opened.uri):
            log = opened.log()
            if not wants_checkpoint(log):
                return None
            opened.checkpoint()
        return Done(opened.table.name, "checkpoint", files=log.commits, size=log.commit_bytes)


def _weight(piece: _Piece) -> int:
    """How much work a piece is, in rows."""
    if isinstance(piece, Hour | Day | Advised):
        return piece.rows + piece.files * FILE_ROWS
    if isinstance(piece, Slice):
        return _SLICE_ROWS * piece.rows
    return sum(file.rows + FILE_ROWS for file in piece.files)


@contextmanager
def _told(uri: str) -> Iterator[None]:
    """Turn what delta-rs, Arrow and DuckDB raise into one sentence."""
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException, duckdb.Error) as error:
        otherwise = "check that its folder is whole and writable and its disk not full, and try again"
        message = f"The table {uri} could not be maintained ({cause_of(error)}): {advice(error, otherwise)}."
        raise MaintenanceError(message) from error
