"""Rows of the lake as they arrive: what each round changed, for the rules to judge.

A start reads what was current at one round, and everything after it, from the files that can contain it. From then on
only new files are read, so that the cost of a look depends on what it finds, not on the lake's age. `rounds` is read
first and written last, so all rows of the rounds that a look finds are there.

Rounds are ordered by their numbers. Their times are only displayed: one that a wrong clock puts a day ahead changes
nothing for those after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streaming.alerts.judging.chunks import COLUMNS, Chunk, FeedRound, Standing
from streaming.alerts.judging.firing import passed_ms
from streaming.alerts.judging.new_rows import WaitingRows, newest_first
from streaming.alerts.rules.expressions import fetched
from streaming.tables import DataFile, in_memory, table_named

# Rounds that are judged together after a start. More cost memory (at worst 10,000 rows a round), fewer cost time.
_CHUNK_ROUNDS = 120

# `lag` and `group_health` repeat their rows at a heartbeat, so every current key has a row within the last two.
_WITH_HEARTBEAT = frozenset({"lag", "group_health"})

_ALWAYS = ("round", "round_time")

# Files that a start reads together while it does not know how far back it must go: first few, as one of a compacted
# lake has the rows of a day, then twice as many each time, because one that is not has those of a batch.
_SCANNED_FIRST, _SCANNED_AT_ONCE = 25, 400


class Feed:
    """The rows of one cluster that some rules read.

    Call `begin` first, then `look` again and again.
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
        # (`rounds` first: rows of a round that it shows are then in the other tables.)
        for name in sorted(self._columns, key=lambda name: name != "rounds"):
            table = table_named(name)
            wanted = {*table.key, *table.newest_by, *_ALWAYS, *self._columns[name]} | (
                {"ended"} if table.closes else set()
            )
            names = tuple(column.name for column in table.columns if column.name in wanted)
            self._tables[name] = WaitingRows(lake.rstrip("/"), table, names, cluster)
        health = self._columns.get("group_health", frozenset())
        self._standing = Standing(self._tables["group_health"].waiting.schema) if health >= COLUMNS else None

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """By table the columns that its rows have."""
        return {name: tuple(table.waiting.schema.names) for name, table in self._tables.items()}

    def begin(self, since: int | None, look_back_ms: int) -> Iterator[Chunk]:
        """Read from a round on: first the rows current at it, then in chunks the rows after it.

        Args:
            since: Number of the round to begin at; None begins with the first of the last `look_back_ms`.
            look_back_ms: How far back, ms, if no round is given or it no longer exists.

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
        current = {
            name: self._current(name, found, first.number, before) for name, found in sets.items() if name != "drift"
        }
        if "drift" in sets:
            current["drift"] = self._current_drift(sets["drift"], first.number, current["group_health"])
        yield self._chunk((first,), current)
        for start in range(1, len(rounds), _CHUNK_ROUNDS):
            piece = rounds[start : start + _CHUNK_ROUNDS]
            after = rounds[start - 1].number
            until = piece[-1].number
            yield self._chunk(piece, {n: self._tables[n].rows(found, after, until) for n, found in sets.items()})
        for name, found in sets.items():
            self._keep(name, found, after=rounds[-1].number)

    def look(self, newest: int | None) -> Chunk | None:
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
        return self._chunk(rounds, {name: table.take(until) for name, table in self._tables.items()})

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
        table = self._tables["rounds"]
        files = sorted(found, key=newest_first, reverse=True)
        rounds: list[FeedRound] = []
        # The newest files first, until the wanted round is there: it is hardly ever far back.
        for part, left in _in_growing_parts(files):
            rounds = _as_rounds(table.rows(part, None, None), rounds)
            if not rounds or (left and newest_first(left[0]) >= rounds[0].number):
                continue
            begin = _begin(rounds, since, look_back_ms)
            before = None if begin is None else _back(rounds, begin, 2 * self._heartbeat_ms + 60_000)
            if before is not None:
                self._elapsed = {r.number: r.elapsed for r in rounds[before:begin]}
                return rounds[before].number, tuple(rounds[begin:])
        if not rounds:
            return None, ()
        begin = _begin(rounds, since, look_back_ms)
        if begin is None:
            begin = _begin(rounds, None, look_back_ms) or 0
        self._elapsed = {r.number: r.elapsed for r in rounds[:begin]}
        return None, tuple(rounds[begin:])

    def _current(self, name: str, found: Sequence[DataFile], at: int, before: int | None) -> pa.Table:
        """The newest row of each key at a round, ended keys included; `before` as `_rounds` returns it."""
        oldest = before if name in _WITH_HEARTBEAT else None
        if name == "rounds":
            oldest = at - 1
        return _newest_of(name, self._tables[name].rows(found, oldest, at))

    def _current_drift(self, found: Sequence[DataFile], at: int, health: pa.Table) -> pa.Table:
        """The newest verdict of each present group, but not of an earlier group with the same name."""
        with in_memory() as connection:
            connection.register("health", health)
            sql = "SELECT group_id FROM health WHERE NOT ended AND incarnation IS NOT NULL"
            wanted = {row[0] for row in connection.execute(sql).fetchall()}
        table = self._tables["drift"]
        files = sorted(found, key=newest_first, reverse=True)
        rows = table.waiting
        # A verdict has no heartbeat, so it may be old: the newest files first, until each group has one.
        for part, left in _in_growing_parts(files):
            rows = pa.concat_tables([rows, table.rows(part, None, at)])
            rows = _newest_of("drift", rows)
            if left:
                # (Of a group that decides topic by topic nobody knows how many verdicts there are.)
                newer = pc.greater_equal(rows["round"], newest_first(left[0]))
                sure = rows.filter(pc.and_(newer, pc.is_null(rows["topic"])))["group_id"].to_pylist()
                if wanted <= set(sure):
                    break
        return _of_living(rows, health)

    def _keep(self, name: str, found: Sequence[DataFile], after: int) -> None:
        table = self._tables[name]
        table.keep(table.rows(found, after, None), after)


def _in_growing_parts(files: Sequence[DataFile]) -> Iterator[tuple[Sequence[DataFile], Sequence[DataFile]]]:
    """Parts of a list, in its order, each with what is left after it."""
    start, size = 0, _SCANNED_FIRST
    while start < len(files):
        yield files[start : start + size], files[start + size :]
        start, size = start + size, min(2 * size, _SCANNED_AT_ONCE)


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
    with in_memory() as connection:
        connection.register("drift", drift)
        connection.register("health", health)
        sql = (
            "SELECT * FROM drift AS d WHERE EXISTS (SELECT 1 FROM health AS h WHERE h.group_id = d.group_id "
            "AND NOT h.ended AND h.incarnation IS NOT DISTINCT FROM d.incarnation)"
        )
        return fetched(connection, sql).cast(drift.schema)


def _as_rounds(rows: pa.Table, known: Sequence[FeedRound] = ()) -> list[FeedRound]:
    """The rounds of these rows together with known ones, in order."""
    columns = ("round", "round_time", "interval_ms", "elapsed_ms")
    found = {
        number: FeedRound(number, round(time.timestamp() * 1000), interval or 0, elapsed)
        for number, time, interval, elapsed in zip(*(rows[name].to_pylist() for name in columns), strict=True)
        if number is not None and time is not None
    }
    return sorted({**{r.number: r for r in known}, **found}.values(), key=lambda r: r.number)


def _begin(rounds: Sequence[FeedRound], since: int | None, look_back_ms: int) -> int | None:
    """Index of the round to begin at: by number, or so far back; None if the rounds do not reach it."""
    if since is not None and since <= rounds[-1].number:
        if since < rounds[0].number:
            return None
        found = next((at for at, r in enumerate(rounds) if r.number == since), None)
        if found is not None:
            return found
    return _back(rounds, len(rounds) - 1, look_back_ms, inside=True)


def _back(rounds: Sequence[FeedRound], at: int, span_ms: int, *, inside: bool = False) -> int | None:
    """Index of the first round before one at which a span had not begun (`inside`: the earliest in it)."""
    passed = 0
    while at > 0:
        passed += passed_ms(rounds[at - 1].time, rounds[at - 1].elapsed, rounds[at])
        if passed > span_ms:
            return at if inside else at - 1
        at -= 1
    return None
