"""The newest rows and the recent past of a lake, in memory, kept up to date from new files alone.

For readers that ask often and must answer at once. `LakeReader` opens every file of a table for every question,
which a day of 10 s batches (8,640 files in each busy table) makes seconds; here a refresh reads what the last batch
wrote. The names are the same: `<table>_current` is the same view over fewer rows, `<table>` has the rows of the
recent past. Only the columns that were asked for are held.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.data_file import DAY
from streaming.tables.held import HeldTable, create_group_numbers, drop_gone, forget_groups
from streaming.tables.log_tail import DeltaLogTail, NewFiles
from streaming.tables.memory import fetched_dicts, give_back, holding
from streaming.tables.opened import CUT_AT, DataFile, has_text
from streaming.tables.read import VIEWS
from streaming.tables.schema import DAILY, HEARTBEAT, Table, table_named

# Files that are read at the first `update`, and by one `read_on`: few at first, so that a page soon has rows; then
# many, because each reading merges once.
_AT_FIRST, _AT_ONCE = 120, 1_000

# Rows that are in memory beside those that are held, while files are read: as many as our own compaction puts into a
# row group. Fewer cost more merges, and each rewrites the present.
_PIECE_ROWS = 131_072

# Rows of one reading, after which they are compressed: uncompressed they take up to 200 bytes each.
_MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a table is held.

    Attributes:
        current: Columns of `<table>_current`; empty without that view.
        past: Columns of the table itself; empty without it.
        reach: How far the newest row of a living key can lie behind the newest of its cluster (tables with a
            heartbeat): a start reads no further back. For a table whose keys nothing closes, how much of the view is of
            interest. None holds the newest row of every key.
        span: How far back the table itself goes; None for as far as all others.
    """

    current: frozenset[str] = frozenset()
    past: frozenset[str] = frozenset()
    reach: timedelta | None = None
    span: timedelta | None = None


def reach_of_living(heartbeat: timedelta) -> timedelta:
    """How far the newest row of a living group, or of its partition, can lie behind the newest round.

    Args:
        heartbeat: How often the job repeats rows that do not change (`job.heartbeat_ms`). Slow rounds add to it.
    """
    return 1.5 * heartbeat + timedelta(minutes=1)


def reach_of(table: Table, heartbeat: timedelta) -> timedelta | None:
    """How far the newest row of a key that lives can lie behind the newest round; None where nothing repeats it.

    Args:
        table: The table.
        heartbeat: As of `reach_of_living`.
    """
    # What is repeated once a day has a row of today, yesterday, or, if it rests, of the evening before.
    return {HEARTBEAT: reach_of_living(heartbeat), DAILY: timedelta(days=3)}.get(table.repeats or "")


@dataclass(frozen=True, slots=True)
class _Part:
    """A file that is still to be read: for the present, or for the past."""

    file: DataFile
    present: bool


@dataclass(slots=True)
class _Followed:
    """One table: its rows in memory, its log, and what is still to be read, from the end.

    Attributes:
        present_only: Which rows the present needs, of what is still to be read; None needs all.
        past_only: The same of the past.
    """

    held: HeldTable
    log_tail: DeltaLogTail
    todo: list[_Part] = field(default_factory=list)
    present_only: pc.Expression | None = None
    past_only: pc.Expression | None = None


class TableCache:
    """SQL over the present and the recent past of one lake.

    One thread calls `update` and, until `behind` is 0, `read_on`; any number of threads call `rows`. Each sees a
    whole update or nothing of it.
    """

    def __init__(self, root: str, wanted: Mapping[str, Wanted], past: timedelta) -> None:
        """Prepare; nothing is read before the first `update`.

        Args:
            root: Folder or URI of the lake.
            wanted: What is held, by table. With a reach, `rounds` should be one of them: without it nobody knows which
                clusters a compacted file has, and a start reads all that have several.
            past: How far back from the newest row of a cluster the tables go.
        """
        self._lock = threading.Lock()
        self._connection = holding()
        create_group_numbers(self._connection)
        # When each cluster had its newest round: one that is silent has its present where it had its last rounds.
        self._newest_rounds: dict[str, datetime] = {}
        # Files that were behind when a reading failed, and those of them that the present needs: what is held lacks
        # them until the next `update` has found what there is to read.
        self._forgotten = (0, 0)
        # The views leave out what is of a closed cluster.
        closed = wanted.get("clusters", Wanted())
        wanted = {**wanted, "clusters": replace(closed, current=closed.current | {"state"})}
        self._followed = [
            _followed(self._connection, root, table_named(name), wish, past) for name, wish in wanted.items()
        ]
        by_name = {one.held.table.name: one.held for one in self._followed}
        for held in by_name.values():
            held.create()
        for view in VIEWS:
            one = by_name.get(view.removesuffix("_current"))
            if one is not None and one.current:
                one.create_current()

    @property
    def behind(self) -> int:
        """Files that were there at the first look and are not read yet, also while a reading has failed."""
        return self._forgotten[0] + sum(len(one.todo) for one in self._followed)

    @property
    def present_behind(self) -> int:
        """Those of them that the `_current` views need."""
        return self._forgotten[1] + sum(part.present for one in self._followed for part in one.todo)

    def update(self) -> bool:
        """Take in what is new; the first time, the newest files of each table. True if anything has changed.

        Raises:
            LakeUnreadableError: A table is there, and cannot be read.
        """
        with self._whole():
            # A batch writes `rounds` last: looked at first, everything of the rounds that it shows is there.
            ordered = sorted(self._followed, key=lambda one: one.held.table.name != "rounds")
            new_files = {one.held.table.name: one.log_tail.read_new_files() for one in ordered}
            if "rounds" in new_files:
                self._see_rounds(new_files["rounds"], ordered[0].log_tail)
            changed = False
            for one in self._followed:
                held, found = one.held, new_files[one.held.table.name]
                if found.is_snapshot:
                    changed = True
                    held.empty()
                    self._plan(one, found.files)
                    self._read(one, _AT_FIRST)
                elif found.files:
                    changed = True
                    self._add_new_files(one, found.files[::-1])
        self._forgotten = (0, 0)
        if any(found.is_snapshot for found in new_files.values()):
            self._compress()
        return changed

    def read_on(self) -> None:
        """Read some of the files that are still behind, the newest first; after a failed read, start over.

        Raises:
            LakeUnreadableError: One of them cannot be read.
        """
        if any(self._forgotten):
            self.update()
            return
        one = max(self._followed, key=lambda one: (any(part.present for part in one.todo), len(one.todo)))
        with self._whole():
            self._read(one, _AT_ONCE)
        self._compress()

    def tidy(self) -> None:
        """Let go of what is older than was asked for, and lay the past out by group; call it now and then."""
        if self.behind:
            return
        numbered = [one.held for one in self._followed if one.held.past and one.held.grouped]
        with self._whole():
            drop_gone(self._connection, [one.held for one in self._followed])
            for one in self._followed:
                one.held.drop_old()
            if numbered:
                forget_groups(self._connection, numbered)
        for held in numbered:
            held.sort(self._whole, self._compress)
        self._compress()

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run a query; one dict per row."""
        with self._lock:
            cursor = self._connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            return fetched_dicts(cursor, sql, dict(parameters or {}))
        finally:
            cursor.close()

    def arrow(self, queries: Mapping[str, str], parameters: Mapping[str, Any] | None = None) -> dict[str, pa.Table]:
        """Run queries over the same rows; those of each as columns, by the query's name."""
        with self._lock:
            cursor = self._connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            cursor.begin()
            return {name: cursor.sql(sql, params=parameters).to_arrow_table() for name, sql in queries.items()}
        finally:
            cursor.close()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of it or nothing: what was seen and could not be read is looked for again."""
        behind = self.behind, self.present_behind
        self._connection.begin()
        try:
            yield
        except BaseException:
            self._connection.rollback()
            self._forgotten = behind
            for one in self._followed:
                one.log_tail.forget()
                one.todo.clear()
            raise
        self._connection.commit()

    def _compress(self) -> None:
        """Compress what was written, and give back what that frees; later, if a question is being answered."""
        with suppress(duckdb.TransactionException):
            self._connection.execute("CHECKPOINT")
        give_back()

    def _see_rounds(self, found: NewFiles, log_tail: DeltaLogTail) -> None:
        """Note when each cluster had its newest round; files that several clusters share are opened for it."""
        if found.is_snapshot:
            self._newest_rounds.clear()
        newest = self._newest_rounds
        for name, time in _newest_by_cluster(found.files).items():
            newest[name] = max(newest.get(name, time), time)
        shared = [file for file in found.files if _only_cluster(file) is None or file.newest is None]
        for rows in log_tail.pieces(shared, ("cluster", "round", "round_time"), None, _PIECE_ROWS):
            self._connection.register("some_rounds", rows)
            # By number: a round of a clock that was ahead is not the newest one.
            sql = "SELECT cluster, max_by(round_time, round) FROM some_rounds WHERE round_time IS NOT NULL GROUP BY 1"
            for name, time in self._connection.execute(sql).fetchall():
                newest[name] = max(newest.get(name, time), time)
            self._connection.unregister("some_rounds")

    def _plan(self, one: _Followed, files: Sequence[DataFile]) -> None:
        """Choose the files of a table that are to be read, the newest first: the present before the past.

        A file is needed where it can have rows of the last `reach` (present) or `span` (past) before the newest round
        of one of its clusters; of those files only such rows are read.
        """
        held = one.held
        # A round of the future, by a wrong clock, must not make all others old.
        now = datetime.now(UTC)
        newest = self._newest_rounds or _newest_by_cluster(files)
        ends = {name: min(time, now) for name, time in newest.items()}

        def is_needed(file: DataFile, span: timedelta | None) -> bool:
            if span is None or file.newest is None or (not self._newest_rounds and _only_cluster(file) is None):
                return True
            is_of_rounds = held.time == "round_time"
            return _only_cluster(file) not in {None, *ends} or any(
                has_text(file.clusters, name)
                and until - file.newest <= span
                and not (is_of_rounds and file.oldest is not None and file.oldest > newest[name] + span)
                for name, until in ends.items()
            )

        one.present_only, one.past_only = (_rows_since(held.time, ends, span) for span in (held.reach, held.span))
        past = [_Part(file, present=False) for file in files if held.past and is_needed(file, held.span)]
        present = [_Part(file, present=True) for file in files if held.current and is_needed(file, held.reach)]
        one.todo = [*past[::-1], *present[::-1]]

    def _read(self, one: _Followed, most: int) -> None:
        """Read some of what is still to be read: all of it for the present, or all for the past."""
        files: list[DataFile] = []
        rows = 0
        present = bool(one.todo) and one.todo[-1].present
        while one.todo and len(files) < most and one.todo[-1].present == present:
            rows += one.todo[-1].file.rows or _MOST_ROWS
            if files and rows > _MOST_ROWS:
                break
            files.append(one.todo.pop().file)
        held = one.held
        columns, only = (held.current, one.present_only) if present else (held.past, one.past_only)
        pieces = one.log_tail.pieces(files[::-1], columns, only, _PIECE_ROWS)
        if present:
            self._merge([held.newest(rows) for rows in pieces], held)
            return
        for rows in pieces:
            held.add_to_past(rows)

    def _add_new_files(self, one: _Followed, files: Sequence[DataFile]) -> None:
        """Add all rows of new files to the present and the past, the oldest first."""
        held, newest = one.held, []
        for rows in one.log_tail.pieces(files, {*held.current, *held.past}, None, _PIECE_ROWS):
            if held.current:
                newest.append(held.newest(rows))
            if held.past:
                held.add_to_past(rows)
        self._merge(newest, held)

    def _merge(self, newest: list[pa.Table], held: HeldTable) -> None:
        # Merged once: what a merge replaces is freed at the transaction's end.
        if len(newest) > 1:
            newest = [held.newest(pa.concat_tables(newest))]
        for rows in newest:
            held.merge(rows)


def _only_cluster(file: DataFile) -> str | None:
    """The cluster of all rows of a file; None where there are several, or nobody knows."""
    bounds = file.clusters
    if bounds is not None and bounds[0] == bounds[1] and len(bounds[0].encode()) < CUT_AT:
        return bounds[0]
    return None


def _newest_by_cluster(files: Sequence[DataFile]) -> dict[str, datetime]:
    """The newest time of each cluster, by files that have one cluster alone."""
    newest: dict[str, datetime] = {}
    for file in files:
        if (name := _only_cluster(file)) is not None and file.newest is not None:
            newest[name] = max(newest.get(name, file.newest), file.newest)
    return newest


def _rows_since(column: str, ends: Mapping[str, datetime], span: timedelta | None) -> pc.Expression | None:
    """Rows of the last span before each cluster's newest round; those without a time, and of unknown clusters, too."""
    if span is None:
        return None
    time, cluster = pc.field(column), pc.field("cluster")
    wanted = time.is_null() | ~cluster.isin(pa.array(list(ends), pa.string()))
    for name, until in ends.items():
        first = until - span
        wanted |= (cluster == name) & (time >= (first.date() if column == DAY else first))
    return wanted


def _followed(
    connection: duckdb.DuckDBPyConnection, root: str, table: Table, wish: Wanted, past: timedelta
) -> _Followed:
    time = table.time
    needed = {"cluster", time, *({"group_id"} & set(table.key))}
    # What the view itself asks for, beside the columns that it shows.
    of_view = {*needed, *table.key, *table.newest_by, *(("ended",) if table.closes else ())}
    held = HeldTable(
        connection=connection,
        table=table,
        time=time,
        current=tuple(c.name for c in table.columns if wish.current and c.name in wish.current | of_view),
        past=tuple(c.name for c in table.columns if wish.past and c.name in wish.past | needed),
        reach=wish.reach,
        span=past if wish.span is None else min(wish.span, past),
    )
    return _Followed(held, DeltaLogTail(root, table))
