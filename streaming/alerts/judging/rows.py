"""The rows that rules judge, as they arrive: what each round changed, and events.

A start reads what was current at one round, and everything after it, from the files that can contain it. From then on
only new files are read, so that the cost of a poll depends on what it finds, not on the lake's age. `rounds` is read
first and written last, so all rows of the rounds that a poll finds are there; rows of rounds that are still open wait.

Rounds are ordered by their numbers. Their times are only displayed: one that a wrong clock puts a day ahead changes
nothing for those after it. For rows that belong to no round (`gaps`, `quarantine`, `alert_deliveries`), the position in
a table is a version of it, which is committed with the decisions that follow from its rows: so a restart misses
none and repeats none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.alerts.exceptions import LostTrackError
from streaming.alerts.judging.chunks import COLUMNS, Chunk, FeedRound, Standing
from streaming.alerts.judging.firing import passed_ms
from streaming.alerts.rules.expressions import fetched
from streaming.alerts.rules.rules import TIME_BEHIND
from streaming.lifecycle import room_log
from streaming.tables import DataFile, DeltaLogTail, LakeUnreadableError, Table, in_memory, table_named
from streaming.times import DAY_MS, epoch_ms

_LOG = room_log(__name__)

_ANY_ROUND = 2**63 - 1

# Time columns of the tables; the tail requires them, but nothing here uses them.
_TIMES = {"gaps": "to_time", "quarantine": "record_time", "alert_deliveries": "attempt_time"}

EVENTS_BACK_MS: Final = DAY_MS // 2
"""How far back a first start looks for events at most: files that compaction has replaced are kept for a day."""


class WaitingRows:
    """The rows of one table that wait for their round: at a start in the relevant files, then in new ones only."""

    def __init__(self, lake: str, table: Table, columns: tuple[str, ...], cluster: str) -> None:
        self._schema = pa.schema([table.arrow_schema.field(name) for name in columns])
        self._cluster = cluster
        self._log_tail = DeltaLogTail(lake, table, "round_time")
        self._is_there = False
        self._after = -1
        self.waiting = self._schema.empty_table()

    def snapshot(self) -> Sequence[DataFile]:
        """The present files, from which `read` continues; none if there is no table yet."""
        self.waiting = self._schema.empty_table()
        self._log_tail.forget()
        found = self._log_tail.read_new_files()
        self._is_there = found.is_snapshot
        return found.files

    def rows(self, files: Collection[DataFile], after: int | None, until: int | None) -> pa.Table:
        """Rows of the cluster in files, after a round and up to another (numbers, None for no bound)."""
        # Delta need not know the bounds of a file: then it is read.
        chosen = [
            file
            for file in files
            if file.rounds is None
            or ((after is None or file.rounds[1] > after) and (until is None or file.rounds[0] <= until))
        ]
        if not chosen:
            return self._schema.empty_table()
        wanted = pc.field("cluster") == self._cluster
        if after is not None:
            wanted &= pc.field("round") > after
        if until is not None:
            wanted &= pc.field("round") <= until
        return self._log_tail.read(chosen, self._schema.names, wanted).cast(self._schema)

    def keep(self, rows: pa.Table, after: int) -> None:
        """Let these rows wait, and of later ones only those newer than a round: the others were read."""
        self.waiting, self._after = rows, after

    def read(self) -> None:
        """Add the rows of new files to `waiting`."""
        try:
            new = self._log_tail.read_new_files()
            if new.is_snapshot and self._is_there:
                message = f"The table {self._log_tail.uri} is another table than before, or its commits were cleaned up"
                raise LostTrackError(message)
            self._is_there = self._is_there or new.is_snapshot
            if new.files:
                self.waiting = pa.concat_tables([self.waiting, self.rows(new.files, self._after, None)])
        except LakeUnreadableError as error:
            raise LostTrackError(str(error)) from error

    def pop(self, until: int) -> pa.Table:
        """Remove and return the waiting rows of rounds up to one."""
        if self.waiting.num_rows == 0:
            return self.waiting
        now = pc.less_equal(self.waiting["round"], until)
        taken = self.waiting.filter(now)
        self.waiting = self.waiting.filter(pc.invert(now))
        return taken


def _newest(file: DataFile) -> int:
    """Number of the newest round in a file; of a file of unknown rounds, more than any."""
    return file.rounds[1] if file.rounds is not None else _ANY_ROUND


class EventFeed:
    """New rows of one cluster. Call `begin` first, then `poll` repeatedly."""

    def __init__(self, lake: str, cluster: str, columns: Mapping[str, frozenset[str]]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            cluster: Whose rows.
            columns: Columns by table that the rules read.
        """
        self._cluster = cluster
        self._columns = columns
        self._log_tails = {name: DeltaLogTail(lake.rstrip("/"), table_named(name), _TIMES[name]) for name in columns}
        self._written_after = 0

    @property
    def versions(self) -> dict[str, int]:
        """The version up to which each table was read; without tables that do not exist yet."""
        return {name: f.version for name, f in self._log_tails.items() if f.version >= 0}

    def begin(self, versions: Mapping[str, int], written_after: int) -> None:
        """Continue after these versions.

        Args:
            versions: By table; one that is missing was never read.
            written_after: For a table that was never read, or whose commits since then were cleaned up, only what was
                written after this time (ms, by the clock of the writers) counts as new.
        """
        self._written_after = written_after
        for name, log_tail in self._log_tails.items():
            if name not in versions:
                log_tail.go_on_since(written_after)
            elif not log_tail.go_on_after(versions[name]):
                _LOG.warning("commits to the table %s since the last decision are gone", name)
                log_tail.go_on_since(written_after)

    def poll(self) -> dict[str, pa.Table]:
        """New rows by table, without tables that have none.

        Raises:
            LakeUnreadableError: A table exists but cannot be read: begin again.
        """
        found = {}
        for name, log_tail in self._log_tails.items():
            new = log_tail.read_new_files()
            files = [f for f in new.files if not new.is_snapshot or f.written > self._written_after]
            if not files:
                continue
            table = table_named(name)
            wanted = {"cluster", *table.key, *table.newest_by, *self._columns[name]}
            rows = log_tail.read(files, wanted)
            rows = rows.filter(pc.equal(rows["cluster"], self._cluster))
            if rows.num_rows:
                found[name] = rows
        return found


# Rounds that are judged together after a start. More cost memory (at worst 10,000 rows a round), fewer cost time.
_CHUNK_ROUNDS = 120

# `lag` and `group_health` repeat their rows at a heartbeat, so every current key has a row within the last two.
_WITH_HEARTBEAT = frozenset({"lag", "group_health"})

_ALWAYS = ("round", "round_time")

# A start reads rounds from files that were written so long before the newest one: more than two heartbeats of rounds.
_WRITTEN_WITHIN_MS = 2 * DAY_MS


class Feed:
    """The rows of one cluster that some rules read.

    Call `begin` first, then `poll` repeatedly.
    """

    def __init__(self, lake: str, cluster: str, columns: Mapping[str, frozenset[str]], heartbeat_ms: int) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            cluster: Whose rows.
            columns: Columns by table that the rules read; keys and rounds come with them.
            heartbeat_ms: Heartbeat of the job.
        """
        self._cluster = cluster
        self._heartbeat_ms = max(heartbeat_ms, 600_000)
        self._columns = {"rounds": frozenset[str](), **columns}
        if "drift" in columns:
            # A verdict ends with its group (`drift_current`).
            self._columns["group_health"] = self._columns.get("group_health", frozenset()) | {"incarnation"}
            self._columns["drift"] |= {"incarnation"}
        self._columns["rounds"] |= {"interval_ms", "elapsed_ms"}
        self._tables: dict[str, WaitingRows] = {}
        self._elapsed: dict[int, int | None] = {}
        # `rounds` first: rows of a round that it shows are then in the other tables.
        for name in sorted(self._columns, key=lambda name: name != "rounds"):
            table = table_named(name)
            wanted = {*table.key, *table.newest_by, *_ALWAYS, *self._columns[name]} | (
                {"ended"} if table.closes else set()
            )
            names = tuple(column.name for column in table.columns if column.name in wanted)
            self._tables[name] = WaitingRows(lake.rstrip("/"), table, names, cluster)
        health = self._columns.get("group_health", frozenset())
        self._standing = None
        if health >= COLUMNS:
            only_losing = TIME_BEHIND not in health
            self._standing = Standing(self._tables["group_health"].waiting.schema, only_losing=only_losing)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """By table the columns that its rows have."""
        return {name: tuple(table.waiting.schema.names) for name, table in self._tables.items()}

    def begin(self, since: int | None, look_back_ms: int, chunk_rounds: int = _CHUNK_ROUNDS) -> Iterator[Chunk]:
        """Read from a round on: first the rows current at it, then in chunks the rows after it.

        Args:
            since: Number of the round to begin at; None begins with the first of the last `look_back_ms`.
            look_back_ms: How far back, ms, if no round is given or it no longer exists.
            chunk_rounds: At most this many rounds are in a chunk.

        Yields:
            A chunk, the first one with the rows current at its only round; nothing while there is no round.

        Raises:
            LostTrackError: The tables changed meanwhile in a way that requires a new start.
        """
        sets = {name: table.snapshot() for name, table in self._tables.items()}
        self._elapsed = {}
        before, rounds = self._rounds(sets["rounds"], since, look_back_ms)
        if self._standing is not None:
            self._standing.begin(self._elapsed)
        if not rounds:
            # There may be rows of rounds that are not closed yet: all of them still wait.
            for name, found in sets.items():
                self._keep(name, found, after=-1)
            return
        first = rounds[0]
        current = {name: self._current(name, found, first.number, before) for name, found in sets.items()}
        if "drift" in sets:
            current["drift"] = _of_living(current["drift"], current["group_health"])
        yield self._chunk((first,), current)
        for start in range(1, len(rounds), chunk_rounds):
            piece = rounds[start : start + chunk_rounds]
            after = rounds[start - 1].number
            until = piece[-1].number
            yield self._chunk(piece, {n: self._tables[n].rows(found, after, until) for n, found in sets.items()})
        for name, found in sets.items():
            self._keep(name, found, after=rounds[-1].number)

    def poll(self, newest: int | None) -> Chunk | None:
        """Read the new rows; None when no round has come since the newest (its number).

        Raises:
            LostTrackError: Start again with `begin`.
        """
        for table in self._tables.values():
            table.read()
        found = _as_rounds(self._tables["rounds"].waiting)
        rounds = tuple(r for r in found if newest is None or r.number > newest)
        if not rounds:
            return None
        until = rounds[-1].number
        return self._chunk(rounds, {name: table.pop(until) for name, table in self._tables.items()})

    def _chunk(self, rounds: tuple[FeedRound, ...], rows: Mapping[str, pa.Table]) -> Chunk:
        return Chunk(rounds, rows, self._standing.at(rounds, rows["group_health"]) if self._standing else None)

    def _rounds(
        self, found: Sequence[DataFile], since: int | None, look_back_ms: int
    ) -> tuple[int | None, tuple[FeedRound, ...]]:
        """Rounds from one on, or of the last `look_back_ms`.

        Returns:
            A round far enough before the first of them that every current key has a row after it (None when there is
            none so far back), and the rounds.
        """
        oldest = max((file.written for file in found), default=0) - _WRITTEN_WITHIN_MS - 2 * look_back_ms
        files = [file for file in found if file.written >= oldest or (since is not None and _newest(file) >= since)]
        rounds = _as_rounds(self._tables["rounds"].rows(files, None, None))
        if not rounds:
            return None, ()
        begin = next((at for at, one in enumerate(rounds) if one.number == since), None)
        if begin is None:
            begin = _back(rounds, len(rounds) - 1, look_back_ms, inside=True) or 0
        before = _back(rounds, begin, 2 * self._heartbeat_ms + 60_000)
        self._elapsed = {r.number: r.elapsed for r in rounds[before or 0 : begin]}
        return None if before is None else rounds[before].number, tuple(rounds[begin:])

    def _current(self, name: str, found: Sequence[DataFile], at: int, before: int | None) -> pa.Table:
        """The newest row of each key at a round, ended keys included; `before` as `_rounds` returns it."""
        oldest = at - 1 if name == "rounds" else before if name in _WITH_HEARTBEAT else None
        return _newest_of(name, self._tables[name].rows(found, oldest, at))

    def _keep(self, name: str, found: Sequence[DataFile], after: int) -> None:
        table = self._tables[name]
        table.keep(table.rows(found, after, None), after)


def _newest_of(name: str, rows: pa.Table) -> pa.Table:
    """The newest row of each key, by the table's order."""
    table = table_named(name)
    columns = ", ".join(f'"{column}"' for column in rows.column_names)
    newest = ", ".join(f"{column} DESC" for column in table.newest_by)
    sql = (
        f"SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {', '.join(table.key)} "  # noqa: S608
        f"ORDER BY {newest}) AS age FROM found) WHERE age = 1"
    )
    with in_memory() as connection:
        connection.register("found", rows)
        return fetched(connection, sql).cast(rows.schema)


def _of_living(drift: pa.Table, health: pa.Table) -> pa.Table:
    """The verdicts of present groups, but not of an earlier group with the same name."""
    with in_memory() as connection:
        connection.register("drift", drift)
        connection.register("health", health)
        sql = (
            "SELECT * FROM drift AS d WHERE EXISTS (SELECT 1 FROM health AS h WHERE h.group_id = d.group_id "
            "AND NOT h.ended AND h.incarnation IS NOT DISTINCT FROM d.incarnation)"
        )
        return fetched(connection, sql).cast(drift.schema)


def _as_rounds(rows: pa.Table) -> list[FeedRound]:
    """The rounds of these rows, in order."""
    columns = ("round", "round_time", "interval_ms", "elapsed_ms")
    found = {
        number: FeedRound(number, epoch_ms(time), interval or 0, elapsed)
        for number, time, interval, elapsed in zip(*(rows[name].to_pylist() for name in columns), strict=True)
        if number is not None and time is not None
    }
    return sorted(found.values(), key=lambda r: r.number)


def _back(rounds: Sequence[FeedRound], at: int, span_ms: int, *, inside: bool = False) -> int | None:
    """Index of the first round before one at which a span had not begun (`inside`: the earliest in it)."""
    passed = 0
    while at > 0:
        passed += passed_ms(rounds[at - 1].time, rounds[at - 1].elapsed, rounds[at])
        if passed > span_ms:
            return at if inside else at - 1
        at -= 1
    return None
