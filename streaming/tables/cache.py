"""The newest rows and the recent past of a lake, in memory, kept up to date from new files alone.

For readers that ask often and must answer at once. `LakeReader` opens every file of a table for every question,
which a day of 10 s batches (8,640 files in each busy table) makes seconds; here a refresh reads what the last batch
wrote. The names are the same: `<table>_current` is the same view over fewer rows, `<table>` has the rows of the
recent past. Only the columns that were asked for are held.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from streaming.tables.dataset import DAY
from streaming.tables.log_tail import DataFile, DeltaLogTail
from streaming.tables.read import VIEWS, current_sql
from streaming.tables.schema import Table, table_named

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

# Files that are read at the first look, and at once later: few, that a page sees its first rows soon; then many,
# because what is merged is merged once per reading.
_AT_FIRST, _AT_ONCE = 120, 1_000

# Rows that are in memory beside those that are held, while files are read: as many as our own compaction puts into a
# row group. Fewer cost more merges, of which each writes the present anew.
_PIECE_ROWS = 131_072

# Rows of one reading. What it replaces is freed at its end, and nobody sees its rows before.
_MOST_ROWS = 4_000_000

# In tables of the past a group is a number: comparing texts would be most of the work of every question.
_GROUP = ("cluster", "group_id")

# The day comes last: it is all that advice has.
_TIMES = ("round_time", "record_time", "attempt_time", "to_time", DAY)


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


@dataclass(frozen=True, slots=True)
class _Part:
    """What is needed of a file.

    Attributes:
        file: The file.
        near: Whether the current view needs it.
        since: Rows of an earlier time are not needed; None needs all. A file of a compacted day has all of it.
        near_since: The same for the current view alone.
    """

    file: DataFile
    near: bool = True
    since: datetime | None = None
    near_since: datetime | None = None


@dataclass(slots=True)
class _Held:
    table: Table
    time: str
    current: tuple[str, ...]
    past: tuple[str, ...]
    reach: timedelta | None
    span: timedelta
    log_tail: DeltaLogTail
    grouped: bool
    """Whether a row speaks of a group."""
    todo: list[_Part] = field(default_factory=list)
    """Files that are still to be read, the oldest first."""

    @property
    def past_columns(self) -> tuple[str, ...]:
        """Columns of the past as they are kept: without those that the group's number stands for."""
        return tuple(c for c in self.past if not (self.grouped and c in _GROUP))


class TableCache:
    """SQL over the present and the recent past of one lake.

    One thread calls `update` and, until `behind` is 0, `read_on`; any number of threads call `rows`. Each sees a
    whole update or nothing of it.
    """

    def __init__(self, root: str, wanted: Mapping[str, Wanted], past: timedelta) -> None:
        """Prepare; nothing is read before the first `update`.

        Args:
            root: Folder or URI of the lake.
            wanted: What is held, by table.
            past: How far back from the newest row of a cluster the tables go.
        """
        self._lock = threading.Lock()
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("CREATE TABLE group_numbers (number INTEGER, cluster VARCHAR, group_id VARCHAR)")
        self._held = [_held(root, table_named(name), wish, past) for name, wish in wanted.items()]
        for held in self._held:
            self._create(held)
        names = {held.table.name for held in self._held if held.current}
        for view in VIEWS:
            name = view.removesuffix("_current")
            if name in names:
                columns = next(held.current for held in self._held if held.table.name == name)
                sql = current_sql(table_named(name), f"newest_{name}", columns)
                self._connection.execute(f"CREATE VIEW {view} AS {sql}")

    @property
    def behind(self) -> int:
        """Files that were there at the first look and are not read yet."""
        return sum(len(held.todo) for held in self._held)

    @property
    def present_behind(self) -> int:
        """Those of them that the `_current` views need."""
        return sum(part.near for held in self._held for part in held.todo)

    def update(self) -> bool:
        """Take in what is new; the first time, the newest files of each table. True if anything has changed.

        Raises:
            LakeUnreadableError: A table is there, and cannot be read.
        """
        with self._whole():
            # A batch writes `rounds` last: looked at first, everything of the rounds that it shows is there.
            ordered = sorted(self._held, key=lambda h: h.table.name != "rounds")
            new_files = {held.table.name: held.log_tail.look() for held in ordered}
            changed = False
            for held in self._held:
                found = new_files[held.table.name]
                if found.is_snapshot:
                    changed = True
                    self._empty(held)
                    held.todo = self._worth_reading(held, found.files)
                    self._read(held, _AT_FIRST)
                elif found.files:
                    changed = True
                    self._take(held, [_Part(file) for file in found.files])
        return changed

    def read_on(self) -> None:
        """Read some of the files that are still behind, the newest first.

        Raises:
            LakeUnreadableError: One of them cannot be read.
        """
        held = max(self._held, key=lambda h: (any(part.near for part in h.todo), len(h.todo)))
        with self._whole():
            self._read(held, _AT_ONCE)

    def tidy(self) -> None:
        """Let go of what is older than was asked for, and lay the past out by group; call it now and then."""
        if self.behind:
            return
        with self._whole():
            for held in self._held:
                if held.past:
                    self._keep(f"past_{held.table.name}", held, held.span)
                if held.current:
                    # (What has ended says so itself: no living row is dropped for its time, for clocks can be off.)
                    if held.reach is not None and not held.table.closes:
                        self._keep(f"newest_{held.table.name}", held, held.reach)
                    if held.table.closes:
                        self._connection.execute(f"DELETE FROM newest_{held.table.name} WHERE ended")  # noqa: S608

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run a query; one dict per row."""
        with self._lock:
            cursor = self._connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            cursor.execute(sql, dict(parameters or {}))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
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
        self._connection.begin()
        try:
            yield
        except BaseException:
            self._connection.rollback()
            for held in self._held:
                held.log_tail.forget()
                held.todo.clear()
            raise
        self._connection.commit()

    def _create(self, held: _Held) -> None:
        name = held.table.name
        empty = held.table.arrow_schema.empty_table()
        self._connection.register("incoming", empty)
        if held.current:
            self._connection.execute(f"CREATE TABLE newest_{name} AS SELECT {_list(held.current)} FROM incoming")  # noqa: S608
        if held.past:
            number, source = ("0::INTEGER AS number, ", f"past_{name} JOIN group_numbers USING (number)")
            if not held.grouped:
                number, source = "", f"past_{name}"
            self._connection.execute(
                f"CREATE TABLE past_{name} AS SELECT {number}{_list(held.past_columns)} FROM incoming"  # noqa: S608
            )
            self._connection.execute(f"CREATE VIEW {name} AS SELECT {_list(held.past)} FROM {source}")  # noqa: S608
        self._connection.unregister("incoming")

    def _empty(self, held: _Held) -> None:
        for kind, columns in (("newest", held.current), ("past", held.past)):
            if columns:
                self._connection.execute(f"DELETE FROM {kind}_{held.table.name}")  # noqa: S608

    def _worth_reading(self, held: _Held, files: tuple[DataFile, ...]) -> list[_Part]:
        newest: dict[tuple[str, str] | None, datetime] = {}
        for file in files:
            if file.newest is not None:
                newest[file.clusters] = max(newest.get(file.clusters, _LONG_AGO), file.newest)
        # A round of the future, by a wrong clock, must not make all others old.
        now = datetime.now(UTC)
        found = []
        for file in reversed(files):
            until = min(newest.get(file.clusters, now), now)
            age = until - file.newest if file.newest is not None else timedelta(0)
            near = bool(held.current) and (held.reach is None or age <= held.reach)
            if near or (held.past and age <= held.span):
                # (In a file of several clusters one may have been silent for long: its newest rows are the present.)
                of_one = file.newest is not None and file.clusters is not None and len(set(file.clusters)) == 1
                of_past = until - held.span if of_one else None
                of_present = until - held.reach if of_one and held.reach is not None else None
                found.append(_Part(file, near, of_past, of_present))
        return found

    def _read(self, held: _Held, most: int) -> None:
        part: list[_Part] = []
        rows = 0
        for one in reversed(held.todo[-most:]):
            rows += one.file.rows or _MOST_ROWS
            if part and rows > _MOST_ROWS:
                break
            part.append(one)
        if part:
            self._take(held, part[::-1])
            del held.todo[-len(part) :]

    def _take(self, held: _Held, parts: list[_Part]) -> None:
        """Merge rows into what is held.

        The present and the past are read apart where a file has more of the past than of the present: the present has
        many columns, of which a whole day would be read for its last minutes.
        """
        near = [part for part in parts if part.near] if held.current else []
        alike = [part for part in near if part.near_since == part.since] if held.past else []
        others = [part for part in near if part not in alike]
        if alike:
            for _ in self._rows(held, alike, {*held.current, *held.past}, [part.since for part in alike]):
                self._merge(held)
                self._add_to_past(held)
        if others:
            for _ in self._rows(held, others, held.current, [part.near_since for part in others]):
                self._merge(held)
        rest = [part for part in parts if part not in alike] if held.past else []
        if rest:
            for _ in self._rows(held, rest, held.past, [part.since for part in rest]):
                self._add_to_past(held)

    def _rows(
        self, held: _Held, parts: list[_Part], columns: Collection[str], since: Collection[datetime | None]
    ) -> Iterator[None]:
        """Rows of files as "incoming", a piece at a time."""
        first = None if None in since else min(time for time in since if time is not None)
        for rows in held.log_tail.pieces([part.file for part in parts], columns, first, _PIECE_ROWS):
            self._connection.register("incoming", rows)
            yield
            self._connection.unregister("incoming")

    def _add_to_past(self, held: _Held) -> None:
        number, source = "", "incoming"
        if held.grouped:
            self._connection.execute(
                "INSERT INTO group_numbers SELECT (SELECT count(*) FROM group_numbers) + row_number() OVER () - 1,"
                " cluster, group_id FROM (SELECT DISTINCT cluster, group_id FROM incoming)"
                " ANTI JOIN group_numbers USING (cluster, group_id)"
            )
            number, source = "number, ", "incoming JOIN group_numbers USING (cluster, group_id)"
        self._connection.execute(
            f"INSERT INTO past_{held.table.name} SELECT {number}{_list(held.past_columns)} FROM {source}"  # noqa: S608
        )

    def _merge(self, held: _Held) -> None:
        name, columns = f"newest_{held.table.name}", _list(held.current)
        key, newest = _list(held.table.key), ", ".join(f'"{c}" DESC' for c in held.table.newest_by)
        self._connection.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT {columns} FROM ("  # noqa: S608
            f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {newest}) AS age FROM ("
            f"SELECT {columns} FROM incoming UNION ALL SELECT {columns} FROM {name})) WHERE age = 1"
        )

    def _keep(self, name: str, held: _Held, span: timedelta) -> None:
        """Rebuild a table without what is older than a span before its newest row (or now), laid out by group."""
        past = name.startswith("past_")
        group = "number" if past and held.grouped else "cluster"
        # For the past, the newest of each group's cluster would cost a join over all of it, for what it saves.
        by_cluster = "" if past and held.grouped else " WHERE o.cluster = t.cluster"
        self._connection.execute(
            f'CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} AS t WHERE t."{held.time}" IS NULL'  # noqa: S608
            f' OR t."{held.time}" >= (SELECT least(max(o."{held.time}"), now()) FROM {name} AS o{by_cluster})'
            f' - to_seconds({span.total_seconds()}) ORDER BY t.{group}, t."{held.time}"'
        )


def _held(root: str, table: Table, wish: Wanted, past: timedelta) -> _Held:
    names = {c.name for c in table.columns}
    time = next(name for name in _TIMES if name in names)
    needed = {"cluster", time, *({"group_id"} & set(table.key))}
    # What the view itself asks for, beside the columns that it shows.
    of_view = {*needed, *table.key, *table.newest_by, *(("ended",) if table.closes else ())}
    return _Held(
        table=table,
        time=time,
        current=tuple(c.name for c in table.columns if wish.current and c.name in wish.current | of_view),
        past=tuple(c.name for c in table.columns if wish.past and c.name in wish.past | needed),
        reach=wish.reach,
        span=past if wish.span is None else min(wish.span, past),
        log_tail=DeltaLogTail(root, table, time),
        grouped="group_id" in table.key,
    )


def _list(columns: Collection[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
