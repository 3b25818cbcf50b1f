"""Which rows of a day past its retention stay: the present, and what the alerter remembers.

A row stays when it is the newest of what it tells of (`Retention.living`) and that still lives. What has ended (an
`ended` row, or its group's) goes, but its last row only after all others: deleted before them it would bring an earlier
row of it back to life in the `_current` views. Days are deleted from the oldest on, so that takes one pass; where a
wrong clock has put the end on an earlier day, one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.maintain.table.plan import File
from streaming.tables import Table, data_set, limited, stored_schema

# Groups whose rows are looked for by name in older files: with more of them nearly every row group has one.
_NAMED_GROUPS = 10_000

# Files that are searched together: enough for both cores, few enough that a search ends early.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Living:
    """What lives, as other tables say it; asked only where a table needs it.

    Attributes:
        groups: Those of some groups (`cluster`, `group_id`) that live.
        alerts: Ids of the alerts that are pending or firing: `alert_id`.
    """

    groups: Callable[[pa.Table], pa.Table]
    alerts: Callable[[], pa.Table]


def rows_that_stay(
    table: Table, expired: Sequence[File], others: Sequence[File], living: Living, folder: Any
) -> pa.Table | None:
    """Rows of an expired day that stay, as its files store them; None when there are none.

    Args:
        table: The table.
        expired: All files of the day.
        others: All other files of the table.
        living: What lives.
        folder: The table's `file_system`.
    """
    rule = table.retention
    if not rule.living and not rule.of_alerts:
        return None
    with limited() as connection:
        connection.register("expired", _data_set(table, expired, folder))
        conditions = ["false"]
        if rule.living:
            _find_newest(connection, table, others, living, folder)
            names = dict.fromkeys((*rule.living, *_order(table)))
            same = " AND ".join(f"n.{name} IS NOT DISTINCT FROM e.{name}" for name in names)
            conditions.append(f"EXISTS (SELECT 1 FROM newest AS n WHERE {same})")  # noqa: S608
        if rule.of_alerts:
            connection.register("alerts_alive", living.alerts())
            conditions.append("EXISTS (SELECT 1 FROM alerts_alive AS a WHERE a.alert_id = e.alert_id)")
            if "outcome" in {column.name for column in table.columns}:
                conditions.append("e.outcome = 'added'")
        columns = ", ".join(f'e."{c.name}"' for c in table.columns if c.name not in table.partition_by)
        sql = f"SELECT {columns} FROM expired AS e WHERE {' OR '.join(conditions)}"  # noqa: S608
        rows: pa.Table = connection.sql(sql).to_arrow_table()
    return rows.cast(stored_schema(table)) if rows.num_rows else None


def _order(table: Table) -> tuple[str, ...]:
    # (Of a group's decisions the newest is that of the highest number, then of the highest revision.)
    more = tuple(c for c in table.key if c not in table.retention.living)
    return (*more, *table.newest_by)


def _find_newest(
    connection: duckdb.DuckDBPyConnection, table: Table, others: Sequence[File], living: Living, folder: Any
) -> None:
    """Make the table `newest`: which of the expired rows are the newest and live, by `living` and order."""
    names = table.retention.living
    order = _order(table)
    columns = ", ".join((*names, *order))
    newest_first = ", ".join(f"{c} DESC NULLS LAST" for c in order)
    first = f"row_number() OVER (PARTITION BY {', '.join(names)} ORDER BY {newest_first}) = 1"
    ended = "ended IS TRUE" if table.closes else "false"
    connection.execute(
        "CREATE TEMP TABLE candidates AS SELECT *, false AS older_elsewhere "  # noqa: S608
        f"FROM (SELECT {columns}, {ended} AS is_over FROM expired QUALIFY {first})"
    )
    same = " AND ".join(f"c.{name} IS NOT DISTINCT FROM o.{name}" for name in names)
    newer = f"({_comparable('o', order)}) >= ({_comparable('c', order)})"
    for part in _newest_first(others):
        if _is_empty(connection, "candidates"):
            break
        found = _data_set(table, part, folder).scanner(
            columns=[*names, *order], filter=_of_groups(connection, "candidates", names)
        )
        connection.register("elsewhere", found.to_reader())
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE o_newest AS "  # noqa: S608
            f"SELECT {columns} FROM elsewhere QUALIFY {first}"
        )
        connection.unregister("elsewhere")
        connection.execute(f"DELETE FROM candidates AS c USING o_newest AS o WHERE {same} AND {newer}")  # noqa: S608
        connection.execute(f"UPDATE candidates AS c SET older_elsewhere = true FROM o_newest AS o WHERE {same}")  # noqa: S608
    lives = "NOT is_over"
    if table.retention.with_group:
        wanted = connection.sql("SELECT DISTINCT cluster, group_id FROM candidates").to_arrow_table()
        connection.register("groups_alive", living.groups(wanted))
        lives = "EXISTS (SELECT 1 FROM groups_alive AS g WHERE g.cluster = c.cluster AND g.group_id = c.group_id)"
    connection.execute(f"CREATE TEMP TABLE newest AS SELECT * FROM candidates AS c WHERE older_elsewhere OR {lives}")  # noqa: S608


def _comparable(alias: str, columns: Sequence[str]) -> str:
    """Numbers that order rows, as a tuple in which NULL is the least, as in the `_current` views."""
    return ", ".join(f"coalesce({alias}.{column}, {-(2**63)})" for column in columns)


def living_groups(wanted: pa.Table, health: Table, files: Sequence[File], folder: Any) -> pa.Table:
    """Groups whose newest row in `group_health` has not ended.

    Args:
        wanted: The groups asked for: `cluster`, `group_id`.
        health: The table `group_health`.
        files: All its files.
        folder: Its `file_system`.
    """
    with limited() as connection:
        connection.register("wanted", wanted)
        connection.execute("CREATE TEMP TABLE unknown AS SELECT * FROM wanted")
        connection.execute("CREATE TEMP TABLE alive (cluster VARCHAR, group_id VARCHAR)")
        # A group that lives has a heartbeat, so the newest files know nearly all of them.
        for part in _newest_first(files):
            if _is_empty(connection, "unknown"):
                break
            found = _data_set(health, part, folder).scanner(
                columns=["cluster", "group_id", "round", "ended"],
                filter=_of_groups(connection, "unknown", ("group_id",)),
            )
            connection.register("elsewhere", found.to_reader())
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE known AS SELECT cluster, group_id, max_by(ended, round) AS ended "
                "FROM elsewhere SEMI JOIN unknown USING (cluster, group_id) GROUP BY ALL"
            )
            connection.unregister("elsewhere")
            connection.execute("INSERT INTO alive SELECT cluster, group_id FROM known WHERE ended IS NOT TRUE")
            connection.execute(
                "DELETE FROM unknown AS u USING known AS k WHERE u.cluster = k.cluster AND u.group_id = k.group_id"
            )
        return connection.sql("SELECT * FROM alive").to_arrow_table()


def _is_empty(connection: duckdb.DuckDBPyConnection, relation: str) -> bool:
    return not connection.execute(f"SELECT 1 FROM {relation} LIMIT 1").fetchall()  # noqa: S608


def _newest_first(files: Sequence[File]) -> Iterator[list[File]]:
    """Files in parts, those written last first: what lives has a row there, where a table has a heartbeat."""
    # (By the time of writing, not by day: that comes from brokers' clocks, and one of them may be years ahead.)
    ordered = sorted(files, key=lambda file: file.written, reverse=True)
    for start in range(0, len(ordered), _AT_ONCE):
        yield ordered[start : start + _AT_ONCE]


def _of_groups(connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str]) -> ds.Expression | None:
    """A filter by which row groups are skipped: files are sorted by group."""
    if "group_id" not in names:
        return None
    sql = f"SELECT DISTINCT group_id FROM {relation} LIMIT {_NAMED_GROUPS + 1}"  # noqa: S608
    groups = [row[0] for row in connection.execute(sql).fetchall()]
    if len(groups) > _NAMED_GROUPS or None in groups:
        return None
    return pc.field("group_id").isin(pa.array(groups, pa.string()))


def _data_set(table: Table, files: Sequence[File], folder: Any) -> ds.FileSystemDataset:
    # (The day is no column of the files, and nothing here asks for it.)
    return data_set([(file.place, None) for file in files], stored_schema(table), folder)
