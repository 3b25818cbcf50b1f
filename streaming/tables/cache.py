"""The newest rows and the recent past of a lake, in memory, kept up to date from new files alone.

For readers that ask often and must answer at once. `LakeReader` opens every file of a table for every question,
which a day of 10 s batches (8,640 files in each busy table) makes seconds; here a refresh reads what the last batch
wrote. The names are the same: `<table>_current` is the same view over fewer rows, `<table>` has the rows of the
recent past. Only the columns that were asked for are held.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from streaming.tables.dataset import DAY
from streaming.tables.held import HeldTable, create_group_numbers, drop_gone, forget_groups
from streaming.tables.log_tail import DeltaLogTail
from streaming.tables.memory import fetched_dicts, give_back, holding
from streaming.tables.needed import NewestRounds, Part, parts_of
from streaming.tables.read import VIEWS
from streaming.tables.schema import Table, table_named

# Files that are read at the first look, and at once later: few, that a page sees its first rows soon; then many,
# because what is merged is merged once per reading.
_AT_FIRST, _AT_ONCE = 120, 1_000

# Rows that are in memory beside those that are held, while files are read: as many as our own compaction puts into a
# row group. Fewer cost more merges, and each rewrites the present.
_PIECE_ROWS = 131_072

# Rows of one reading, after which they are compressed: uncompressed they take up to 200 bytes each.
_MOST_ROWS = 1_000_000

# The day comes last: it is all that advice has.
_TIMES = ("round_time", "record_time", "attempt_time", "to_time", "written_time", DAY)


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
    return 1.25 * heartbeat + timedelta(minutes=1)


@dataclass(slots=True)
class _Followed:
    """One table: its rows in memory, its log, and the files that are still to be read, from the end."""

    held: HeldTable
    log_tail: DeltaLogTail
    todo: list[Part] = field(default_factory=list)


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
        self._newest_rounds = NewestRounds(self._connection)
        # Files that were behind when a reading failed, and those of them that the present needs: what is held lacks
        # them until the next `update` has found what there is to read.
        self._forgotten = (0, 0)
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
            new_files = {one.held.table.name: one.log_tail.look() for one in ordered}
            if "rounds" in new_files:
                self._newest_rounds.take(new_files["rounds"], ordered[0].log_tail)
            changed = False
            for one in self._followed:
                held, found = one.held, new_files[one.held.table.name]
                if found.is_snapshot:
                    changed = True
                    held.empty()
                    one.todo = parts_of(held, found.files, self._newest_rounds.times)
                    self._read(one, _AT_FIRST, present_first=True)
                elif found.files:
                    changed = True
                    self._take(one, [Part(file, bool(held.current), bool(held.past)) for file in found.files])
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

    def arrow(self, sql: str) -> pa.Table:
        """Run a query; its rows as columns, for many of them."""
        with self._lock:
            cursor = self._connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            return cursor.sql(sql).to_arrow_table()
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

    def _read(self, one: _Followed, most: int, *, present_first: bool = False) -> None:
        parts: list[Part] = []
        rows = 0
        for part in reversed(one.todo[-most:]):
            rows += part.file.rows or _MOST_ROWS
            if parts and (rows > _MOST_ROWS or (present_first and not part.present)):
                break
            parts.append(part)
        if parts:
            del one.todo[-len(parts) :]
            one.todo += self._take(one, parts[::-1], past_later=present_first)

    def _take(self, one: _Followed, parts: list[Part], *, past_later: bool = False) -> list[Part]:
        """Merge rows into what is held.

        The present and the past are read apart where a large file has more of the past than of the present: the present
        has many columns, of which a whole day would be read for its last minutes.

        Args:
            one: The table.
            parts: Files of it.
            past_later: What would have to be read apart is left.

        Returns:
            What is left of the parts, the oldest first.
        """
        held = one.held
        alike = [part for part in parts if _is_read_once(part)]
        others = [part for part in parts if part.present and not _is_read_once(part)]
        rest = [part for part in parts if part.past and not _is_read_once(part)]
        # (Merged once: each merge rewrites the present, and what it replaces is freed at the transaction's end.)
        newest = []
        for _ in self._rows(one, alike, {*held.current, *held.past}, [part.since_either for part in alike]):
            newest.append(held.newest())
            held.add_to_past()
        rows = self._rows(one, others, held.current, [part.present_since for part in others])
        newest.extend(held.newest() for _ in rows)
        if newest:
            held.merge(pa.concat_tables(newest))
        if past_later:
            return [replace(part, present=False) for part in rest]
        for _ in self._rows(one, rest, held.past, [part.since for part in rest]):
            held.add_to_past()
        return []

    def _rows(
        self, one: _Followed, parts: list[Part], columns: Collection[str], since: Collection[datetime | None]
    ) -> Iterator[None]:
        """Rows of files as "incoming", a piece at a time."""
        if not parts:
            return
        first = None if None in since else min(time for time in since if time is not None)
        every = [part.clusters for part in parts]
        clusters = None if None in every else frozenset[str]().union(*(some for some in every if some is not None))
        files = [part.file for part in parts]
        for rows in one.log_tail.pieces(files, columns, first, _PIECE_ROWS, clusters):
            self._connection.register("incoming", rows)
            yield
            self._connection.unregister("incoming")


def _is_read_once(part: Part) -> bool:
    """Whether a file is read once for the present and the past: it has as much of both, or is small."""
    is_small = part.file.rows is not None and part.file.rows <= _PIECE_ROWS
    return part.present and part.past and (is_small or part.present_since == part.since)


def _followed(
    connection: duckdb.DuckDBPyConnection, root: str, table: Table, wish: Wanted, past: timedelta
) -> _Followed:
    names = {c.name for c in table.columns}
    time = next(name for name in _TIMES if name in names)
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
    return _Followed(held, DeltaLogTail(root, table, time))
