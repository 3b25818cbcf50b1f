"""Rows of one table in a database in memory: the newest of each key, and the recent past, laid out by group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

import duckdb
import pyarrow as pa

from streaming.tables.read import current_sql
from streaming.tables.schema import Table

# Rows of the past that are sorted at once: as many are in memory twice, uncompressed.
_SORTED_AT_ONCE = 500_000

# In tables of the past a group is a number: comparing texts would be most of the work of every question.
_GROUP = ("cluster", "group_id")


def create_group_numbers(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the table of groups and their numbers, which all tables of the past share; before any of those."""
    connection.execute("CREATE TABLE group_numbers (number INTEGER, cluster VARCHAR, group_id VARCHAR)")


def forget_groups(connection: duckdb.DuckDBPyConnection, tables: Iterable[HeldTable]) -> None:
    """Let go of the numbers of groups that have no row of the past: some clients make a group of each run.

    Args:
        connection: The database.
        tables: All tables whose past may have numbers.
    """
    used = " UNION ALL ".join(f"SELECT number FROM past_{one.table.name}" for one in tables)  # noqa: S608
    connection.execute(f"DELETE FROM group_numbers WHERE number NOT IN ({used})")  # noqa: S608


def drop_gone(connection: duckdb.DuckDBPyConnection, tables: Sequence[HeldTable]) -> None:
    """Let go of rows that live with a group that has ended; before `drop_old`, which forgets that groups have ended.

    Rows of a later round than the group's end stay: the group's own row is read a moment after them.

    Args:
        connection: The database.
        tables: All tables that are held.
    """
    if any(one.table.name == "group_health" and one.current for one in tables):
        for one in tables:
            if one.current and one.table.with_group:
                connection.execute(
                    f"DELETE FROM newest_{one.table.name} AS t USING newest_group_health AS h"  # noqa: S608
                    " WHERE h.cluster = t.cluster AND h.group_id = t.group_id AND h.ended AND t.round <= h.round"
                )


@dataclass(slots=True)
class HeldTable:
    """What of a table is held.

    Attributes:
        connection: The database.
        table: The table.
        time: The column by which rows grow old.
        current: Columns of `<table>_current`, with those that the view itself needs; empty without that view.
        past: Columns of the table itself; empty without it.
        reach: How far the newest row of a key is of interest, before the newest of its cluster; None for ever.
        span: How far back the table itself goes.
        replaced: Rows of the present that may have been replaced since it was written anew.
    """

    connection: duckdb.DuckDBPyConnection
    table: Table
    time: str
    current: tuple[str, ...]
    past: tuple[str, ...]
    reach: timedelta | None
    span: timedelta
    replaced: int = 0

    @property
    def grouped(self) -> bool:
        """Whether a row speaks of a group."""
        return "group_id" in self.table.key

    @property
    def _past_columns(self) -> tuple[str, ...]:
        """Columns of the past as they are kept: without those that the group's number stands for."""
        return tuple(c for c in self.past if not (self.grouped and c in _GROUP))

    def create(self) -> None:
        """Create the tables and the view of the past."""
        name = self.table.name
        self.connection.register("incoming", self.table.arrow_schema.empty_table())
        if self.current:
            self.connection.execute(f"CREATE TABLE newest_{name} AS SELECT {_list(self.current)} FROM incoming")  # noqa: S608
        if self.past:
            number, source = ("0::INTEGER AS number, ", f"past_{name} JOIN group_numbers USING (number)")
            if not self.grouped:
                number, source = "", f"past_{name}"
            self.connection.execute(
                f"CREATE TABLE past_{name} AS SELECT {number}{_list(self._past_columns)} FROM incoming"  # noqa: S608
            )
            self.connection.execute(f"CREATE VIEW {name} AS SELECT {_list(self.past)} FROM {source}")  # noqa: S608
        self.connection.unregister("incoming")

    def create_current(self) -> None:
        """Create the view `<table>_current`; after the tables and views that it joins."""
        sql = current_sql(self.table, f"newest_{self.table.name}", self.current)
        self.connection.execute(f"CREATE VIEW {self.table.name}_current AS {sql}")

    def empty(self) -> None:
        """Let go of all rows."""
        for kind, columns in (("newest", self.current), ("past", self.past)):
            if columns:
                self.connection.execute(f"DELETE FROM {kind}_{self.table.name}")  # noqa: S608

    def newest(self, rows: pa.Table) -> pa.Table:
        """The newest row of each key, with the columns of the present."""
        # Rows are ordered by their key and number alone: whole rows of `lag` take ten times as long.
        ordered = rows.select([*self.table.key, *self.table.newest_by])
        self.connection.register("ordered", ordered.append_column("place", pa.array(range(rows.num_rows))))
        newest = ", ".join(f'"{c}" DESC' for c in self.table.newest_by)
        places = self.connection.sql(
            "SELECT place FROM (SELECT place, row_number() OVER"  # noqa: S608
            f" (PARTITION BY {_list(self.table.key)} ORDER BY {newest}) AS age FROM ordered) WHERE age = 1"
        ).to_arrow_table()
        self.connection.unregister("ordered")
        return rows.select(self.current).take(places["place"])

    def merge(self, rows: pa.Table) -> None:
        """Take rows, as `newest` gives them, into the present.

        Rows of the same keys are replaced. That gives no memory back, so all is written anew as soon as half of the
        rows may have been replaced.
        """
        name, columns = f"newest_{self.table.name}", _list(self.current)
        same = " AND ".join(f't."{c}" IS NOT DISTINCT FROM n."{c}"' for c in self.table.key)
        # A missing value is older than any other.
        old, new = (", ".join(f'{one}."{c}" IS NOT NULL, {one}."{c}"' for c in self.table.newest_by) for one in "tn")
        self.connection.register("newer", rows)
        self.connection.execute(f"DELETE FROM {name} AS t USING newer AS n WHERE {same} AND ({old}) <= ({new})")  # noqa: S608
        self.connection.execute(f"INSERT INTO {name} SELECT {columns} FROM newer AS n ANTI JOIN {name} AS t ON {same}")  # noqa: S608
        self.connection.unregister("newer")
        [(held,)] = self.connection.execute(f"SELECT count(*) FROM {name}").fetchall()  # noqa: S608
        self.replaced += rows.num_rows
        if 2 * self.replaced > held:
            self.connection.execute(f"CREATE TABLE written_anew AS SELECT * FROM {name}")  # noqa: S608
            self.connection.execute(f"DROP TABLE {name}")
            self.connection.execute(f"ALTER TABLE written_anew RENAME TO {name}")
            self.replaced = 0

    def add_to_past(self, rows: pa.Table) -> None:
        """Take rows into the past."""
        self.connection.register("incoming", rows)
        number, source = "", "incoming"
        if self.grouped:
            self.connection.execute(
                "INSERT INTO group_numbers SELECT (SELECT coalesce(max(number), -1) FROM group_numbers)"
                " + row_number() OVER (), cluster, group_id FROM (SELECT DISTINCT cluster, group_id FROM incoming)"
                " ANTI JOIN group_numbers USING (cluster, group_id)"
            )
            number, source = "number, ", "incoming JOIN group_numbers USING (cluster, group_id)"
        self.connection.execute(
            f"INSERT INTO past_{self.table.name} SELECT {number}{_list(self._past_columns)} FROM {source}"  # noqa: S608
        )
        self.connection.unregister("incoming")

    def drop_old(self) -> None:
        """Let go of what is older than was asked for, and of what has ended."""
        if self.past:
            # By the newest row of a group's cluster it would take a join over all of the past, for what it saves.
            self._drop(f"past_{self.table.name}", self.span, by_cluster=not self.grouped)
        if not self.current:
            return
        if self.table.closes:
            # What has ended says so itself: no living row is dropped for its time, for clocks can be off.
            self.connection.execute(f"DELETE FROM newest_{self.table.name} WHERE ended")  # noqa: S608
        elif self.reach is not None:
            self._drop(f"newest_{self.table.name}", self.reach, by_cluster=True)

    def _drop(self, name: str, span: timedelta, *, by_cluster: bool) -> None:
        """Delete what is older than a span before the newest row, or now; rows without a time stay."""
        where = " WHERE o.cluster = t.cluster" if by_cluster else ""
        self.connection.execute(
            f'DELETE FROM {name} AS t WHERE t."{self.time}" < (SELECT least(max(o."{self.time}"), now())'  # noqa: S608
            f" FROM {name} AS o{where}) - to_seconds({span.total_seconds()})"
        )

    def sort(self, whole: Callable[[], AbstractContextManager[None]], compress: Callable[[], None]) -> None:
        """Lay the past out by group, some groups at a time: each with its rows together, by time.

        Args:
            whole: A transaction for some groups.
            compress: Called after each.
        """
        name = f"past_{self.table.name}"
        found = self.connection.execute(f"SELECT number, count(*) FROM {name} GROUP BY 1 ORDER BY 1").fetchall()  # noqa: S608
        first, rows = 0, 0
        for place, (number, more) in enumerate(found):
            rows += more
            if rows < _SORTED_AT_ONCE and place + 1 < len(found):
                continue
            part = f"FROM {name} WHERE number BETWEEN {first} AND {number}"
            with whole():
                self.connection.execute(
                    f'CREATE OR REPLACE TEMP TABLE sorted AS SELECT * {part} ORDER BY number, "{self.time}"'
                )
                self.connection.execute(f"DELETE {part}")
                self.connection.execute(f"INSERT INTO {name} SELECT * FROM sorted")  # noqa: S608
                self.connection.execute("DROP TABLE sorted")
            compress()
            first, rows = number + 1, 0


def _list(columns: Collection[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
