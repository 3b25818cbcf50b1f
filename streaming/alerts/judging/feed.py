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
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.alerts.judging.firing import FeedRound, passed_ms
from streaming.lifecycle import room_log
from streaming.tables import HEARTBEAT, DataFile, DeltaLogTail, LakeUnreadableError, Table, computed, table_named
from streaming.times import DAY_MS, epoch_ms

_LOG = room_log(__name__)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rounds in order, with what the rules judge at them.

    Attributes:
        rounds: The rounds.
        rows: By table the rows that they changed (columns of `Feed`, unordered).
    """

    rounds: tuple[FeedRound, ...]
    rows: Mapping[str, pa.Table]


EVENTS_BACK_MS: Final = DAY_MS // 2
"""How far back a first start looks for events at most: files that compaction has replaced are kept for a day."""


class WaitingRows:
    """The rows of one table that wait for their round: at a start in the relevant files, then in new ones only."""

    def __init__(self, lake: str, table: Table, columns: tuple[str, ...], cluster: str) -> None:
        self._schema = pa.schema([table.arrow_schema.field(name) for name in columns])
        self._cluster = cluster
        self._log_tail = DeltaLogTail(lake, table)
        self._is_there = False
        self._after = -1
        self.files: Collection[DataFile] = ()
        self.waiting = self._schema.empty_table()

    def snapshot(self) -> None:
        """Find the present files, from which `read` continues; none if there is no table yet."""
        self.waiting = self._schema.empty_table()
        self._log_tail.forget()
        found = self._log_tail.read_new_files()
        self.files, self._is_there = found.files, found.is_snapshot

    def rows(self, after: int | None, until: int | None) -> pa.Table:
        """Rows of the snapshot, after a round and up to another (numbers, None for no bound)."""
        return self._rows(self.files, after, until)

    def _rows(self, files: Collection[DataFile], after: int | None, until: int | None) -> pa.Table:
        # Delta need not know the bounds of a file: then it is read.
        chosen = [
            file
            for file in files
            if file.may_have(self._cluster)
            and (after is None or file.rounds is None or file.rounds[1] > after)
            and (until is None or file.rounds is None or file.rounds[0] <= until)
        ]
        if not chosen:
            return self._schema.empty_table()
        wanted = pc.field("cluster") == self._cluster
        if after is not None:
            wanted &= pc.field("round") > after
        if until is not None:
            wanted &= pc.field("round") <= until
        return self._log_tail.read(chosen, self._schema.names, wanted).cast(self._schema)

    def keep(self, after: int) -> None:
        """Let the rows of the snapshot after a round wait, and of later ones only those: the others were read."""
        self.waiting, self._after = self.rows(after, None), after
        self.files = ()

    def read(self) -> None:
        """Add the rows of new files to `waiting`."""
        new = self._log_tail.read_new_files()
        if new.is_snapshot and self._is_there:
            message = f"The table {self._log_tail.uri} is another table than before, or its commits were cleaned up"
            raise LakeUnreadableError(message)
        self._is_there = self._is_there or new.is_snapshot
        if new.files:
            self.waiting = pa.concat_tables([self.waiting, self._rows(new.files, self._after, None)])

    def pop(self, until: int) -> pa.Table:
        """Remove and return the waiting rows of rounds up to one."""
        if self.waiting.num_rows == 0:
            return self.waiting
        now = pc.less_equal(self.waiting["round"], until)
        taken = self.waiting.filter(now)
        self.waiting = self.waiting.filter(pc.invert(now))
        return taken


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
        self._log_tails = {name: DeltaLogTail(lake, table_named(name)) for name in columns}
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
            files = [
                file
                for file in new.files
                if file.may_have(self._cluster) and (not new.is_snapshot or file.written > self._written_after)
            ]
            if not files:
                continue
            table = table_named(name)
            wanted = {*table.key, *table.newest_by, *self._columns[name]}
            rows = log_tail.read(files, wanted, pc.field("cluster") == self._cluster)
            if rows.num_rows:
                found[name] = rows
        return found


# Rounds that are judged together after a start. More cost memory (at worst 10,000 rows a round), fewer cost time.
_CHUNK_ROUNDS = 120
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
        # `rounds` first: rows of a round that it shows are then in the other tables.
        for name in sorted(self._columns, key=lambda name: name != "rounds"):
            table = table_named(name)
            wanted = {*table.key, *table.newest_by, *_ALWAYS, *self._columns[name]} | (
                {"ended"} if table.closes else set()
            )
            names = tuple(column.name for column in table.columns if column.name in wanted)
            self._tables[name] = WaitingRows(lake, table, names, cluster)

    def begin(self, since: int | None, look_back_ms: int, chunk_rounds: int = _CHUNK_ROUNDS) -> Iterator[Chunk]:
        """Read from a round on: first the rows current at it, then in chunks the rows after it.

        Args:
            since: Number of the round to begin at; None begins with the first of the last `look_back_ms`.
            look_back_ms: How far back, ms, if no round is given or it no longer exists.
            chunk_rounds: At most this many rounds are in a chunk.

        Yields:
            A chunk, the first one with the rows current at its only round; nothing while there is no round.

        Raises:
            LakeUnreadableError: A table cannot be read.
        """
        for table in self._tables.values():
            table.snapshot()
        before, rounds = self._rounds(since, look_back_ms)
        if rounds:
            at = rounds[0].number
            current = {name: self._current(name, at, before) for name in self._tables}
            if "drift" in current:
                current["drift"] = _of_living(current["drift"], current["group_health"])
            yield Chunk(rounds[:1], current)
        for start in range(1, len(rounds), chunk_rounds):
            piece = rounds[start : start + chunk_rounds]
            after, until = rounds[start - 1].number, piece[-1].number
            yield Chunk(piece, {name: table.rows(after, until) for name, table in self._tables.items()})
        # Without rounds there may be rows of rounds that are not closed yet: all of them still wait.
        for table in self._tables.values():
            table.keep(rounds[-1].number if rounds else -1)

    def poll(self, newest: int | None) -> Chunk | None:
        """Read the new rows; None when no round has come since the newest (its number).

        Raises:
            LakeUnreadableError: A table cannot be read, or has lost its log: start again with `begin`.
        """
        for table in self._tables.values():
            table.read()
        found = _as_rounds(self._tables["rounds"].waiting)
        rounds = tuple(r for r in found if newest is None or r.number > newest)
        if not rounds:
            return None
        until = rounds[-1].number
        return Chunk(rounds, {name: table.pop(until) for name, table in self._tables.items()})

    def _rounds(self, since: int | None, look_back_ms: int) -> tuple[int | None, tuple[FeedRound, ...]]:
        """Rounds from one on, or of the last `look_back_ms`.

        Returns:
            A round far enough before the first of them that every current key has a row after it (None when there is
            none so far back), and the rounds.
        """
        table = self._tables["rounds"]
        oldest = max((file.written for file in table.files), default=0) - _WRITTEN_WITHIN_MS - 2 * look_back_ms
        table.files = [
            file
            for file in table.files
            if file.written >= oldest or (since is not None and (file.rounds is None or file.rounds[1] >= since))
        ]
        rounds = _as_rounds(table.rows(None, None))
        if not rounds:
            return None, ()
        begin = next((at for at, one in enumerate(rounds) if one.number == since), None)
        if begin is None:
            begin = _back(rounds, len(rounds) - 1, look_back_ms, inside=True) or 0
        before = _back(rounds, begin, 2 * self._heartbeat_ms + 60_000)
        return None if before is None else rounds[before].number, tuple(rounds[begin:])

    def _current(self, name: str, at: int, before: int | None) -> pa.Table:
        """The newest row of each key at a round, ended keys included; `before` as `_rounds` returns it."""
        # What is repeated at each heartbeat has a row of every current key within the last two.
        oldest = at - 1 if name == "rounds" else before if table_named(name).repeats == HEARTBEAT else None
        rows, table = self._tables[name].rows(oldest, at), table_named(name)
        newest = ", ".join(f"{column} DESC" for column in table.newest_by)
        ranked = f"row_number() OVER (PARTITION BY {', '.join(table.key)} ORDER BY {newest})"
        sql = f"SELECT * FROM found QUALIFY {ranked} = 1"  # noqa: S608
        return computed({"found": rows}, sql, beside_viewers=True).cast(rows.schema)


def _of_living(drift: pa.Table, health: pa.Table) -> pa.Table:
    """The verdicts of present groups, but not of an earlier group with the same name."""
    sql = (
        "SELECT * FROM drift AS d WHERE EXISTS (SELECT 1 FROM health AS h WHERE h.group_id = d.group_id "
        "AND NOT h.ended AND h.incarnation IS NOT DISTINCT FROM d.incarnation)"
    )
    return computed({"drift": drift, "health": health}, sql, beside_viewers=True).cast(drift.schema)


def _as_rounds(rows: pa.Table) -> list[FeedRound]:
    """The rounds of these rows, in order."""
    columns = ("round", "round_time", "interval_ms", "elapsed_ms")
    found = {
        number: FeedRound(number, epoch_ms(time), interval or 0, elapsed or 0)
        for number, time, interval, elapsed in zip(*(rows[name].to_pylist() for name in columns), strict=True)
        if number is not None and time is not None
    }
    return sorted(found.values(), key=lambda r: r.number)


def _back(rounds: Sequence[FeedRound], at: int, span_ms: int, *, inside: bool = False) -> int | None:
    """Index of the first round before one at which a span had not begun (`inside`: the earliest in it)."""
    passed = 0
    while at > 0:
        passed += passed_ms(rounds[at - 1], rounds[at])
        if passed > span_ms:
            if inside:
                return at
            return at - 1
        at -= 1
    return None
