"""The rows of the past that can matter to rules, in chunks as the alerter gets them.

A month of a thousand groups has a hundred million rows, and hardly any changes an alert. What is left out here is what
`step` passes over in any case:

- rows of a key for which no rule is ever true in the whole time: false and NULL begin nothing;
- a row on which every rule gives what it gave on the key's row before, once `for` is over for all that are true: then
  alerts fire already, and only the newest row before one fires is shown in its message. (Not of verdicts, and not after
  the end of a key.)

What remains goes through the alerter's own conditions and its own `step`. `tests/backtest/` compares the result with
that of an alerter that ran all the time, transition by transition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.alerts import (
    LOSES_DATA,
    STANDING_COLUMNS,
    TIME_BEHIND,
    Chunk,
    Conditions,
    Feed,
    FeedRound,
    Rule,
    Standing,
    connect_for_many_rows,
    passed_ms,
)
from streaming.tables import all_rows, naming_what_is_lost, table_named

# Rounds of a day at the default interval: one chunk a day. More cost memory, fewer cost reads of a day's files.
_CHUNK_ROUNDS: Final = 8_640

# Rows over time are one for each candidate and round of a chunk: some 100 MB.
_STANDING_ROWS: Final = 400_000

_ANY_ROUND: Final = 2**63 - 1


class ClusterPast:
    """The chunks of one cluster's past."""

    def __init__(
        self, lake: str, cluster: str, rules: Sequence[Rule], conditions: Conditions, since_ms: int, heartbeat_ms: int
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            cluster: The cluster.
            rules: The rules that `conditions` judges.
            conditions: Judges them.
            since_ms: How far back from the newest round, ms.
            heartbeat_ms: Heartbeat of the job.
        """
        self._lake, self._cluster, self._since_ms = lake.rstrip("/"), cluster, since_ms
        self._feed = Feed(lake, cluster, conditions.columns, heartbeat_ms)
        self._tables: dict[str, DeltaTable] = {}
        self._data_sets: dict[str, ds.FileSystemDataset] = {}
        self._rules = [rule for rule in rules if not (rule.by_clock or rule.of_events)]

    def first(self) -> Chunk | None:
        """The chunk with what was current at its only round, the first of the time; None while there is no round."""
        return next(iter(self._feed.begin(None, self._since_ms)), None)

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, that of `first` before all others; nothing while there is no round.

        Raises:
            LakeUnreadableError: A data file is gone.
        """
        with naming_what_is_lost(f"The lake {self._lake}"):
            yield from self._chunks()

    def _chunks(self) -> Iterator[Chunk]:
        first = self.first()
        if first is None:
            return
        begin = first.rounds[0]
        with connect_for_many_rows() as connection:
            self._tables = {name: opened for name in self._feed.names if (opened := self._opened(name)) is not None}
            rounds = self._rounds(connection, begin.number)
            wanted = self._wanted(connection, begin.number, first)
            candidates = self._candidates(connection, begin.number, first)
            standing = self._standing(first)
            yield first
            size = _CHUNK_ROUNDS
            if standing is not None and candidates:
                size = max(1, min(size, _STANDING_ROWS // len(candidates)))
            places = _places(begin, rounds)
            after = begin.number
            for start in range(0, len(rounds), size):
                piece = tuple(rounds[start : start + size])
                until = piece[-1].number
                connection.register("rounds_of_chunk", places.slice(start, size))
                rows = {name: self._rows(connection, name, wanted.get(name), after, until) for name in self._tables}
                aged = None
                if standing is not None:
                    aged = standing.at(piece, self._read(connection, "group_health", after, until, candidates))
                yield Chunk(piece, rows, aged)
                after = until

    def _opened(self, name: str) -> DeltaTable | None:
        try:
            return DeltaTable(f"{self._lake}/{name}")
        except TableNotFoundError:
            return None

    def _data(self, name: str) -> ds.FileSystemDataset:
        found = self._data_sets.get(name)
        if found is None:
            opened = self._tables[name]
            found = self._data_sets[name] = all_rows(table_named(name), opened, f"{self._lake}/{name}")
        return found

    def _read(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        after: int,
        until: int,
        groups: Collection[str] | None,
    ) -> pa.Table:
        """Rows of a table after a round and up to another, of some groups or of all, with the columns of the feed."""
        columns = self._feed.names[name]
        schema = pa.schema([table_named(name).arrow_schema.field(column) for column in columns])
        if groups is not None and not groups:
            return schema.empty_table()
        if self._register(connection, name):
            listed = ", ".join("'" + group.replace("'", "''") + "'" for group in sorted(groups or ()))
            of_groups = f" AND group_id IN ({listed})" if groups is not None else ""
            of_chunk = f'WHERE cluster = $cluster AND "round" > $after AND "round" <= $until{of_groups}'
            sql = f'SELECT {_quoted(columns)} FROM "{name}" {of_chunk}'  # noqa: S608 - names of our own, quoted ids
            given = {"cluster": self._cluster, "after": after, "until": until}
            return connection.sql(sql, params=given).to_arrow_table().cast(schema)
        chosen = (ds.field("cluster") == self._cluster) & (ds.field("round") > after) & (ds.field("round") <= until)
        if groups is not None:
            chosen &= ds.field("group_id").isin(sorted(groups))
        return self._data(name).to_table(columns=list(columns), filter=chosen).cast(schema)

    def _register(self, connection: duckdb.DuckDBPyConnection, name: str) -> bool:
        """Show a table to the database under its name; returns whether the database itself reads its files.

        This takes a tenth of the time. It needs a lake in a folder.
        """
        if "://" in self._lake:
            connection.register(name, self._data(name))
            return False
        files = self._tables[name].file_uris()
        if not files:
            connection.register(name, table_named(name).arrow_schema.empty_table())
        else:
            connection.read_parquet(files, union_by_name=True).create_view(name, replace=True)
        return True

    def _of(self, table: str, *, over_time: bool = False) -> list[Rule]:
        return [rule for rule in self._rules if rule.table.name == table and rule.over_time is over_time]

    def _wanted(self, connection: duckdb.DuckDBPyConnection, after: int, first: Chunk) -> dict[str, pa.Table]:
        """By table the keys for which some rule is true in some round, or in a row that was current at the first."""
        found: dict[str, pa.Table] = {}
        for name in self._tables:
            rules = self._of(name)
            if not rules:
                continue
            self._register(connection, name)
            connection.register("current_rows", first.rows[name])
            keys = _quoted(rules[0].key) or "1 AS one"
            true = " OR ".join(f"TRY(({rule.when.sql}\n))" for rule in rules)
            of_cluster = f'FROM "{name}" WHERE cluster = $cluster AND "round" >= $after'
            of_first = f"SELECT {keys} FROM current_rows WHERE {true}"  # noqa: S608 - expressions of checked rules
            sql = f"SELECT {keys} {of_cluster} AND ({true}) UNION {of_first}"
            found[name] = connection.sql(sql, params={"cluster": self._cluster, "after": after}).to_arrow_table()
        if "drift" in found and "group_health" in self._tables:
            # The end of a group ends its verdicts.
            groups = set(found["drift"]["group_id"].to_pylist())
            if "group_health" in found:
                groups |= set(found["group_health"]["group_id"].to_pylist())
            found["group_health"] = pa.table({"group_id": pa.array(sorted(groups), pa.string())})
        return found

    def _rows(
        self, connection: duckdb.DuckDBPyConnection, name: str, wanted: pa.Table | None, after: int, until: int
    ) -> pa.Table:
        """The rows of a chunk that can change an alert."""
        rules = self._of(name)
        if wanted is None or not wanted.num_rows:
            return self._read(connection, name, after, after, ())
        groups = set(wanted["group_id"].to_pylist()) if "group_id" in wanted.column_names else None
        found = self._read(connection, name, after, until, groups)
        if not found.num_rows:
            return found
        table = table_named(name)
        key = rules[0].key if rules else ("group_id",)
        connection.register("wanted", wanted)
        connection.register("read", found)
        same = " AND ".join(f't."{one}" IS NOT DISTINCT FROM w."{one}"' for one in key) or "true"
        answers = "".join(f', TRY(({rule.when.sql}\n)) AS "_c{place}"' for place, rule in enumerate(rules))
        signature = ", ".join(f'"_c{place}"' for place in range(len(rules))) or "NULL"
        hold_ms, hold_rounds = (
            ", ".join(f'CASE WHEN "_c{place}" THEN {hold} ELSE 0 END' for place, hold in enumerate(holds)) or "0"
            for holds in ([rule.hold_ms for rule in rules], [rule.hold_rounds for rule in rules])
        )
        over = f"{f'PARTITION BY {_quoted(key)} ' if key else ''}ORDER BY {_quoted(table.newest_by)}"
        # A new beginning, or another one after an end. Verdicts also end with their groups, and are few: all count.
        ended = " OR ended OR lag(ended) OVER w" if table.closes else " OR true" if name == "drift" else ""
        listed = _quoted(self._feed.names[name])
        sql = f"""
        WITH judged AS (
          SELECT {listed}{answers} FROM read AS t SEMI JOIN wanted AS w ON {same}
        ), signed AS (
          SELECT j.*, ROW({signature}) AS "_signature", r.place AS "_place", r.passed AS "_passed",
            r.passed_before AS "_before"
          FROM judged AS j ASOF JOIN rounds_of_chunk AS r ON j."round" <= r.number
        ), changed AS (
          SELECT *,
            row_number() OVER w = 1 OR "_signature" IS DISTINCT FROM lag("_signature") OVER w{ended} AS "_changed"
          FROM signed WINDOW w AS ({over})
        ), running AS (
          SELECT *, max(CASE WHEN "_changed" THEN "_place" END) OVER w AS "_from",
            max(CASE WHEN "_changed" THEN "_passed" END) OVER w AS "_since"
          FROM changed WINDOW w AS ({over} ROWS UNBOUNDED PRECEDING)
        )
        SELECT {listed} FROM running
        WHERE "_changed" OR "_place" - "_from" <= greatest(0, {hold_rounds}) + 1
          OR "_before" - "_since" < greatest(0, {hold_ms})
        """  # noqa: S608 - names of our own columns, and expressions that `load_rules` has checked
        return connection.sql(sql).to_arrow_table().cast(found.schema)

    def _candidates(self, connection: duckdb.DuckDBPyConnection, after: int, first: Chunk) -> set[str]:
        """Groups for which a rule over time could be true at all."""
        rules = self._of("group_health", over_time=True)
        reads = {column for rule in rules for column in rule.when.columns}
        conditions = []
        if TIME_BEHIND in reads:
            conditions.append("time_behind_seconds_min IS NOT NULL")
        if LOSES_DATA in reads:
            known = "(loses_data_in_seconds_min IS NOT NULL OR loses_data_in_seconds_max IS NOT NULL)"
            safe = "coalesce(loses_data_reason, '') IN ('keeps_up', 'no_retention')"
            conditions.append(f"({known} AND NOT {safe})")
        if not conditions or "group_health" not in self._tables:
            return set()
        self._register(connection, "group_health")
        of_cluster = 'FROM group_health WHERE cluster = $cluster AND "round" >= $after'
        connection.register("current_rows", first.rows["group_health"])
        true = " OR ".join(conditions)
        of_first = f"SELECT group_id FROM current_rows WHERE {true}"  # noqa: S608 - expressions of our own
        sql = f"SELECT group_id {of_cluster} AND ({true}) UNION {of_first}"
        return {row[0] for row in connection.execute(sql, {"cluster": self._cluster, "after": after}).fetchall()}

    def _standing(self, first: Chunk) -> Standing | None:
        if first.standing is None or not self._of("group_health", over_time=True):
            return None
        health = first.rows["group_health"]
        assert set(health.column_names) >= STANDING_COLUMNS  # noqa: S101 - as the feed made it
        standing = Standing(health.schema)
        standing.begin({})
        standing.at(first.rounds, health)
        return standing

    def _rounds(self, connection: duckdb.DuckDBPyConnection, after: int) -> list[FeedRound]:
        """The rounds after one, in order."""
        found: dict[int, FeedRound] = {}
        columns = ("round", "round_time", "interval_ms", "elapsed_ms")
        rows = self._read(connection, "rounds", after, _ANY_ROUND, None).filter(pc.is_valid(pc.field("round_time")))
        times = pc.cast(pc.cast(rows["round_time"], pa.timestamp("ms", "UTC"), safe=False), pa.int64()).to_pylist()
        lists = [rows[name].to_pylist() if name != "round_time" else times for name in columns]
        for number, time, interval, elapsed in zip(*lists, strict=True):
            found[number] = FeedRound(number, time, interval or 0, elapsed)
        return [found[number] for number in sorted(found)]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _places(before: FeedRound, rounds: Sequence[FeedRound]) -> pa.Table:
    """The rounds with their places, and the time that the alerter takes to have passed; for rows to find theirs.

    Rows of a round that was passed over come with the next one.
    """
    passed = 0
    column = []
    for one in rounds:
        passed += passed_ms(before.time, before.elapsed, one)
        column.append(passed)
        before = one
    numbers = [one.number for one in rounds]
    # An alert fires at the first round at which `for` is over, with that round's row.
    values = {
        "number": numbers,
        "place": list(range(len(rounds))),
        "passed": column,
        "passed_before": [0, *column[:-1]],
    }
    return pa.table({name: pa.array(listed, pa.int64()) for name, listed in values.items()})
