"""Rows of the lake as they come: what each round changed, for the rules to judge.

A start reads what was current at one round, and all that came after it, through Delta's own snapshot. From then on only
files that are new are read, so that a look costs as much as it finds, whatever the lake's age. `rounds` is read first
and written last, so all rows of the rounds that a look finds are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from streaming.alerts.expressions import fetched
from streaming.tables.exceptions import LakeUnreadableError
from streaming.tables.follow import TableFollower
from streaming.tables.schema import Table, table_named

__all__ = ["Chunk", "Feed", "LostTrackError", "Round"]

# Rounds that are judged at once after a start. More cost memory (10,000 rows a round at the worst), fewer time.
_CHUNK_ROUNDS = 120

# `lag` and `group_health` repeat their rows at a heartbeat, so what is current at a round has a row of the last two.
_WITH_HEARTBEAT = frozenset({"lag", "group_health"})

_ALWAYS = ("round", "round_time")


class LostTrackError(Exception):
    """Commits or files that should come next are not there: begin anew from a snapshot."""


@dataclass(frozen=True, slots=True)
class Round:
    """One closed round."""

    number: int
    time: int
    interval_ms: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rounds in order, and by table the rows that they changed (columns of `Feed`, unordered)."""

    rounds: tuple[Round, ...]
    rows: Mapping[str, pa.Table] = field(default_factory=dict)


class _Tail:
    """The rows of one table that wait for their round to be closed."""

    def __init__(self, lake: str, table: Table, columns: tuple[str, ...], cluster: str) -> None:
        self._location = f"{lake}/{table.name}"
        self._schema = pa.schema([table.arrow_schema.field(name) for name in columns])
        self._cluster = cluster
        self._follower = TableFollower(lake, table, "round_time")
        self._is_there = False
        self._after = 0
        self.waiting = self._schema.empty_table()

    def snapshot(self) -> ds.Dataset | None:
        """The newest version, from which `read` goes on; None where there is no table yet."""
        self.waiting = self._schema.empty_table()
        self._follower.forget()
        self._is_there = self._follower.look().anew
        if not self._is_there:
            return None
        # (Opened after the follower, so it may show a file more, which then comes once more: `keep` sees to that.)
        found = DeltaTable(self._location).to_pyarrow_dataset()
        missing = [wanted for wanted in self._schema if wanted.name not in found.schema.names]
        # (The job adds the columns of a later release when it starts; the alerter may be there first.)
        return found.replace_schema(pa.schema([*found.schema, *missing])) if missing else found

    def keep(self, rows: pa.Table, after: int) -> None:
        """Let these rows wait, and of those to come only what is newer than a time, ms: the others were read."""
        self.waiting, self._after = rows, after

    def read(self) -> None:
        """Add the rows of new files to `waiting`."""
        try:
            news = self._follower.look()
            files = [f for f in news.files if f.clusters is None or f.clusters[0] <= self._cluster <= f.clusters[1]]
            if news.anew and self._is_there:
                message = f"{self._location} is another table than before, or its commits were cleaned up"
                raise LostTrackError(message)
            self._is_there = self._is_there or news.anew
            if not files:
                return
            rows = self._follower.read(files, self._schema.names)
        except LakeUnreadableError as error:
            raise LostTrackError(str(error)) from error
        ours = pc.and_(
            pc.equal(rows["cluster"], self._cluster), pc.greater(rows["round_time"], _timestamp(self._after))
        )
        self.waiting = pa.concat_tables([self.waiting, rows.filter(ours).cast(self._schema)])

    def take(self, until: int) -> pa.Table:
        """Take the waiting rows of rounds up to a time, ms."""
        if self.waiting.num_rows == 0:
            return self.waiting
        now = pc.less_equal(self.waiting["round_time"], _timestamp(until))
        taken = self.waiting.filter(now)
        self.waiting = self.waiting.filter(pc.invert(now))
        return taken


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
            # Who closes a verdict is its group (`drift_current`).
            self._columns["group_health"] = self._columns.get("group_health", frozenset()) | {"incarnation"}
            self._columns["drift"] |= {"incarnation"}
        self._columns["rounds"] |= {"interval_ms"}
        self._tails: dict[str, _Tail] = {}
        # (`rounds` first: whatever belongs to a round that it shows is then in the others.)
        for name in sorted(self._columns, key=lambda name: name != "rounds"):
            table = table_named(name)
            wanted = {*table.key, *_ALWAYS, *self._columns[name]} | ({"closed"} if table.closes else set())
            names = tuple(column.name for column in table.columns if column.name in wanted)
            self._tails[name] = _Tail(lake.rstrip("/"), table, names, cluster)

    def begin(self, since: int | None, look_back_ms: int) -> Iterator[Chunk]:
        """Read from a round on: first what was current at it, then in pieces what came after.

        Args:
            since: Number of the round to begin at; None begins with the first of the last `look_back_ms`.
            look_back_ms: How far back, ms, where no round is given or it is not there any more.

        Yields:
            A piece, the first one what was current at its only round; nothing while there is no round.

        Raises:
            LostTrackError: The tables changed meanwhile in a way that needs a new beginning.
        """
        sets = {name: tail.snapshot() for name, tail in self._tails.items()}
        rounds = _in_order(self._rounds(sets["rounds"], since, look_back_ms), before=None)
        if not rounds:
            # Rows of rounds that nobody has closed yet may be there: all of them still wait.
            for name, found in sets.items():
                self._keep(name, found, after=0)
            return
        first = rounds[0]
        current = {name: self._current(name, found, first) for name, found in sets.items()}
        if "drift" in current:
            current["drift"] = _of_living(current["drift"], current["group_health"])
        yield Chunk((first,), current)
        for start in range(1, len(rounds), _CHUNK_ROUNDS):
            piece = rounds[start : start + _CHUNK_ROUNDS]
            after = rounds[start - 1].time
            yield Chunk(piece, {n: self._between(n, found, after, piece[-1].time) for n, found in sets.items()})
        for name, found in sets.items():
            self._keep(name, found, after=rounds[-1].time)

    def look(self, newest: int | None) -> Chunk | None:
        """Read what is new; None when no round has come since the newest (its time, ms).

        Raises:
            LostTrackError: Begin anew.
        """
        for tail in self._tails.values():
            tail.read()
        waiting = self._tails["rounds"].waiting
        rounds = _in_order(_as_rounds(waiting), before=newest)
        if not rounds:
            return None
        until = rounds[-1].time
        return Chunk(rounds, {name: tail.take(until) for name, tail in self._tails.items()})

    def _rounds(self, found: ds.Dataset | None, since: int | None, look_back_ms: int) -> list[Round]:
        if found is None:
            return []
        columns = self._tails["rounds"].waiting.column_names
        ours = pc.field("cluster") == self._cluster
        if since is not None:
            rows = found.to_table(columns=columns, filter=ours & (pc.field("round") >= since))
            rounds = _as_rounds(rows)
            if any(r.number == since for r in rounds):
                return rounds
        with duckdb.connect() as connection:
            connection.register("rounds", found)
            sql = "SELECT max(round_time) FROM rounds WHERE cluster = ?"
            newest = connection.execute("SET TimeZone = 'UTC'").execute(sql, [self._cluster]).fetchall()[0][0]
        if newest is None:
            return []
        start = newest - timedelta(milliseconds=look_back_ms)
        time = (pc.field("round_time") >= _timestamp(_ms(start))) & (pc.field("event_date") >= start.date())
        return _as_rounds(found.to_table(columns=columns, filter=ours & time))

    def _current(self, name: str, found: ds.Dataset | None, at: Round) -> pa.Table:
        """The newest row of each key at a round, closed ones too."""
        tail = self._tails[name]
        if found is None:
            return tail.waiting
        table = table_named(name)
        newest = ", ".join(f"{column} DESC" for column in table.newest_by)
        where = "cluster = ? AND round_time <= ?"
        given: list[Any] = [self._cluster, _datetime(at.time)]
        if name in _WITH_HEARTBEAT:
            oldest = _datetime(at.time - 2 * self._heartbeat_ms - 60_000)
            where += " AND round_time >= ? AND event_date >= ?"
            given += [oldest, oldest.date()]
        columns = ", ".join(f'"{column}"' for column in tail.waiting.column_names)
        sql = (
            f"SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {', '.join(table.key)} "  # noqa: S608
            f"ORDER BY {newest}) AS age FROM found WHERE {where}) WHERE age = 1"
        )
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("found", found)
            return fetched(connection, sql, given).cast(tail.waiting.schema)

    def _between(self, name: str, found: ds.Dataset | None, after: int, until: int | None) -> pa.Table:
        tail = self._tails[name]
        if found is None:
            return tail.waiting.slice(0, 0)
        wanted = (pc.field("cluster") == self._cluster) & (pc.field("round_time") > _timestamp(after))
        wanted &= pc.field("event_date") >= _datetime(after).date()
        if until is not None:
            wanted &= pc.field("round_time") <= _timestamp(until)
        return found.to_table(columns=tail.waiting.column_names, filter=wanted).cast(tail.waiting.schema)

    def _keep(self, name: str, found: ds.Dataset | None, after: int) -> None:
        self._tails[name].keep(self._between(name, found, after, None), after)


def _of_living(drift: pa.Table, health: pa.Table) -> pa.Table:
    """Verdicts of groups that are there; not those of a group of the same name that was there before."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("drift", drift)
        connection.register("health", health)
        sql = (
            "SELECT * FROM drift AS d WHERE EXISTS (SELECT 1 FROM health AS h WHERE h.group_id = d.group_id "
            "AND NOT h.closed AND h.incarnation IS NOT DISTINCT FROM d.incarnation)"
        )
        return fetched(connection, sql).cast(drift.schema)


def _as_rounds(rows: pa.Table) -> list[Round]:
    found = [
        Round(number, _ms(time), interval or 0)
        for number, time, interval in zip(
            rows["round"].to_pylist(), rows["round_time"].to_pylist(), rows["interval_ms"].to_pylist(), strict=True
        )
        if number is not None and time is not None
    ]
    return sorted(found, key=lambda r: r.number)


def _in_order(rounds: list[Round], before: int | None) -> tuple[Round, ...]:
    """Rounds whose time grows; one that the broker's clock puts before another that was closed earlier is passed over.

    (`_current` orders by the rounds' time as well, so such a round shows nothing there either.)
    """
    kept: list[Round] = []
    newest = before
    for found in rounds:
        if newest is None or found.time > newest:
            kept.append(found)
            newest = found.time
    return tuple(kept)


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _datetime(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _timestamp(ms: int) -> pa.Scalar:
    return pa.scalar(ms * 1000, pa.timestamp("us", "UTC"))
