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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.alerts import (
    LOSES_DATA,
    STANDING_COLUMNS,
    TIME_BEHIND,
    Chunk,
    Conditions,
    Feed,
    Round,
    Rule,
    Standing,
    connect_for_many_rows,
)
from streaming.tables import all_rows, table_named

# Rounds of a day at the default interval: one chunk a day. More cost memory, fewer cost reads of a day's files.
_CHUNK_ROUNDS: Final = 8_640

# Rows over time are one for each candidate and round of a chunk: some 100 MB.
_STANDING_ROWS: Final = 400_000

# Three intervals pass between two rounds at the most (`passed_ms`).
_SLACK_INTERVALS: Final = 3


class Past:
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
        self._rules = [rule for rule in rules if not (rule.by_clock or rule.of_events)]

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, the first one with what was current at its only round; nothing while there is no round."""
        first = next(iter(self._feed.begin(None, self._since_ms)), None)
        if first is None:
            return
        with connect_for_many_rows() as connection:
            names = [name for name in self._feed.names if self._register(connection, name)]
            rounds = _rounds(connection, self._cluster, first.rounds[0].number)
            wanted = self._wanted(connection, names, first.rounds[0].number)
            candidates = self._candidates(connection, first.rounds[0].number)
            standing = self._standing(first)
            yield first
            size = _CHUNK_ROUNDS
            if standing is not None and candidates.num_rows:
                size = max(1, min(size, _STANDING_ROWS // candidates.num_rows))
            after = first.rounds[0].number
            for start in range(0, len(rounds), size):
                piece = tuple(rounds[start : start + size])
                until = piece[-1].number
                _register_rounds(connection, piece)
                rows = {name: self._rows(connection, name, wanted.get(name), after, until) for name in names}
                aged = None
                if standing is not None:
                    health = self._of_candidates(connection, candidates, after, until)
                    aged = standing.at(piece, health)
                yield Chunk(piece, rows, aged)
                after = until

    def _register(self, connection: duckdb.DuckDBPyConnection, name: str) -> bool:
        """Make a table known to the database; False if there is none yet."""
        try:
            opened = DeltaTable(f"{self._lake}/{name}")
        except TableNotFoundError:
            return False
        connection.register(name, all_rows(table_named(name), opened, f"{self._lake}/{name}"))
        return True

    def _of(self, table: str, *, over_time: bool = False) -> list[Rule]:
        return [rule for rule in self._rules if rule.table.name == table and rule.over_time is over_time]

    def _wanted(self, connection: duckdb.DuckDBPyConnection, names: Sequence[str], after: int) -> dict[str, pa.Table]:
        """By table the keys for which some rule is true in some round."""
        found: dict[str, pa.Table] = {}
        for name in names:
            rules = self._of(name)
            if not rules:
                continue
            keys = _quoted(rules[0].key)
            true = " OR ".join(f"TRY(({rule.when.sql}\n))" for rule in rules)
            of_cluster = f'FROM "{name}" WHERE cluster = $cluster AND "round" >= $after'
            sql = f"SELECT DISTINCT {keys or '1 AS one'} {of_cluster} AND ({true})"
            found[name] = connection.sql(sql, params={"cluster": self._cluster, "after": after}).to_arrow_table()
        if "drift" in found and "group_health" in names:
            # (The end of a group ends its verdicts.)
            groups = found["drift"].select(["group_id"])
            known = found.get("group_health")
            joined = groups if known is None else pa.concat_tables([known, groups], promote_options="permissive")
            connection.register("joined", joined)
            found["group_health"] = connection.sql("SELECT DISTINCT group_id FROM joined").to_arrow_table()
        return found

    def _rows(
        self, connection: duckdb.DuckDBPyConnection, name: str, wanted: pa.Table | None, after: int, until: int
    ) -> pa.Table:
        """The rows of a chunk that can change an alert."""
        columns = self._feed.names[name]
        schema = pa.schema([table_named(name).arrow_schema.field(column) for column in columns])
        rules = self._of(name)
        if wanted is None or not wanted.num_rows or (not rules and name != "group_health"):
            return schema.empty_table()
        table = table_named(name)
        key = rules[0].key if rules else ("group_id",)
        connection.register("wanted", wanted)
        same = " AND ".join(f't."{one}" IS NOT DISTINCT FROM w."{one}"' for one in key) or "true"
        answers = ", ".join(f'TRY(({rule.when.sql}\n)) AS "_c{place}"' for place, rule in enumerate(rules))
        signature = ", ".join(f'"_c{place}"' for place in range(len(rules))) or "NULL"
        hold_ms, hold_rounds = (
            ", ".join(f'CASE WHEN "_c{place}" THEN {hold} ELSE 0 END' for place, hold in enumerate(holds)) or "0"
            for holds in ([rule.hold_ms for rule in rules], [rule.hold_rounds for rule in rules])
        )
        over = f"{f'PARTITION BY {_quoted(key)} ' if key else ''}ORDER BY {_quoted(table.newest_by)}"
        # (A new beginning, or another one after an end. Verdicts also end with their groups, and are few: all count.)
        ended = " OR ended OR lag(ended) OVER w" if table.closes else " OR true" if name == "drift" else ""
        listed = _quoted(columns)
        sql = f"""
        WITH judged AS (
          SELECT {listed}{", " + answers if answers else ""}
          FROM "{name}" AS t SEMI JOIN wanted AS w ON {same}
          WHERE cluster = $cluster AND "round" > $after AND "round" <= $until
        ), signed AS (
          SELECT j.*, ROW({signature}) AS "_signature", r.place AS "_place", r.elapsed AS "_elapsed",
            r.slack AS "_slack"
          FROM judged AS j ASOF LEFT JOIN rounds_of_chunk AS r ON j."round" <= r.number
        ), changed AS (
          SELECT *,
            row_number() OVER w = 1 OR "_signature" IS DISTINCT FROM lag("_signature") OVER w{ended} AS "_changed"
          FROM signed WINDOW w AS ({over})
        ), running AS (
          SELECT *, max(CASE WHEN "_changed" THEN "_place" END) OVER w AS "_from",
            max(CASE WHEN "_changed" THEN "_elapsed" END) OVER w AS "_since"
          FROM changed WINDOW w AS ({over} ROWS UNBOUNDED PRECEDING)
        )
        SELECT {listed} FROM running
        WHERE "_changed" OR "_elapsed" IS NULL OR "_since" IS NULL
          OR "_place" - "_from" <= greatest(0, {hold_rounds}) + 1
          OR (greatest(0, {hold_ms}) > 0 AND "_elapsed" - "_since" <= greatest(0, {hold_ms}) + "_slack")
        """  # noqa: S608 - names of our own columns, and expressions that `load_rules` has checked
        given = {"cluster": self._cluster, "after": after, "until": until}
        return connection.sql(sql, params=given).to_arrow_table().cast(schema)

    def _candidates(self, connection: duckdb.DuckDBPyConnection, after: int) -> pa.Table:
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
        if not conditions:
            return pa.table({"group_id": pa.array([], pa.string())})
        of_cluster = 'FROM group_health WHERE cluster = $cluster AND "round" >= $after'
        sql = f"SELECT DISTINCT group_id {of_cluster} AND ({' OR '.join(conditions)})"
        return connection.sql(sql, params={"cluster": self._cluster, "after": after}).to_arrow_table()

    def _standing(self, first: Chunk) -> Standing | None:
        if first.standing is None or not self._of("group_health", over_time=True):
            return None
        health = first.rows["group_health"]
        assert set(health.column_names) >= STANDING_COLUMNS  # noqa: S101 - as the feed made it
        standing = Standing(health.schema)
        standing.begin({})
        standing.at(first.rounds, health)
        return standing

    def _of_candidates(
        self, connection: duckdb.DuckDBPyConnection, candidates: pa.Table, after: int, until: int
    ) -> pa.Table:
        columns = self._feed.names["group_health"]
        schema = pa.schema([table_named("group_health").arrow_schema.field(column) for column in columns])
        if not candidates.num_rows:
            return schema.empty_table()
        connection.register("candidates", candidates)
        of_chunk = 'WHERE cluster = $cluster AND "round" > $after AND "round" <= $until'
        sql = f"SELECT {_quoted(columns)} FROM group_health SEMI JOIN candidates USING (group_id) {of_chunk}"  # noqa: S608
        given = {"cluster": self._cluster, "after": after, "until": until}
        return connection.sql(sql, params=given).to_arrow_table().cast(schema)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _rounds(connection: duckdb.DuckDBPyConnection, cluster: str, after: int) -> list[Round]:
    sql = """
    SELECT "round", epoch_ms(max(round_time)), max(coalesce(interval_ms, 0)), max(elapsed_ms) FROM rounds
    WHERE cluster = $cluster AND "round" > $after AND round_time IS NOT NULL GROUP BY "round" ORDER BY "round"
    """
    found = connection.execute(sql, {"cluster": cluster, "after": after}).fetchall()
    return [Round(number, time, interval, elapsed) for number, time, interval, elapsed in found]


def _register_rounds(connection: duckdb.DuckDBPyConnection, piece: Sequence[Round]) -> None:
    """The rounds of a chunk, with their places: rows of a round that was passed over come with the next one."""
    columns: Mapping[str, list[Any]] = {
        "number": [one.number for one in piece],
        "place": list(range(len(piece))),
        "elapsed": [one.elapsed for one in piece],
        "slack": [_SLACK_INTERVALS * one.interval_ms for one in piece],
    }
    connection.register(
        "rounds_of_chunk", pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    )
