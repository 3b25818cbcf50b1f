"""The rows of one hour or day, computed by DuckDB from what the tables say of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.history.due import DEFINITION
from streaming.tables import Table, fetched_few, limited, table_named

_FOLDER = Path(__file__).parent

_WHOLE = {"BIGINT": (-(2**63), 2**63 - 1), "INT": (-(2**31), 2**31 - 1)}


def rounds_around(rounds: ds.Dataset | pa.Table, cluster: str, hour: datetime, carry_ms: int) -> pa.Table:
    """The rounds that matter for an hour: its own, and those before it whose values it begins with.

    Args:
        rounds: Rows of `rounds`: those of the hour's day, and of the day with rounds before it.
        cluster: The cluster.
        hour: Beginning of the hour, UTC.
        carry_ms: How old a value can be that the hour begins with, in ms of time between rounds. Rows are repeated at a
            heartbeat, so what lives has one that is no older.

    Returns:
        One row per round: `round`, `in_hour`, `until_ms` (see `steps.sql`).
    """
    with limited() as connection:
        connection.register("rounds", rounds)
        given = {"cluster": cluster, "hour": hour, "carry_ms": carry_ms}
        return fetched_few(connection, _sql("steps"), given)


def group_hours(sources: Mapping[str, ds.Dataset], steps: pa.Table, cluster: str, hour: datetime) -> pa.Table:
    """Rows of `group_hourly` for one hour of one cluster.

    Args:
        sources: Rows of `group_health`, `rebalance_churn` and `drift`; more than the hour needs is only slower.
        steps: As `rounds_around` gives.
        cluster: The cluster.
        hour: Beginning of the hour, UTC.
    """
    with limited() as connection:
        for name, given in {**sources, "steps": steps}.items():
            connection.register(name, given)
        return _rows(connection, table_named("group_hourly"), {"cluster": cluster, "hour": hour})


def partition_hours(lag: ds.Dataset, steps: pa.Table, cluster: str, hour: datetime, parts: int = 1) -> pa.Table:
    """Rows of `partition_hourly` for one hour of one cluster.

    Args:
        lag: Rows of `lag`.
        steps: As `rounds_around` gives.
        cluster: The cluster.
        hour: Beginning of the hour, UTC.
        parts: Groups are worked on in so many parts, one after the other: memory for time.
    """
    bounds = pc.min_max(steps["round"]).as_py()
    with limited() as connection:
        connection.register("steps", steps)
        connection.register("lag", lag)
        given = {"cluster": cluster, "hour": hour, "parts": parts} | {
            "first_round": bounds["min"],
            "last_round": bounds["max"],
        }
        table = table_named("partition_hourly")
        return pa.concat_tables([_rows(connection, table, {**given, "part": part}) for part in range(parts)])


def group_days(hours: ds.Dataset, cluster: str, day: date) -> pa.Table:
    """Rows of `group_daily` for one day of one cluster.

    Args:
        hours: Rows of `group_hourly`.
        cluster: The cluster.
        day: The day.
    """
    with limited() as connection:
        connection.register("group_hourly", hours)
        return _rows(connection, table_named("group_daily"), {"cluster": cluster, "day": day})


def _rows(connection: duckdb.DuckDBPyConnection, table: Table, given: dict[str, Any]) -> pa.Table:
    columns = ", ".join(_bounded(column.name, column.type.sql) for column in table.columns)
    sql = f"SELECT {columns} FROM ({_sql(table.name)})"  # noqa: S608
    found = fetched_few(connection, sql, {**given, "definition": DEFINITION})
    return found.cast(pa.schema([field.remove_metadata() for field in table.arrow_schema]))


def _bounded(name: str, sql_type: str) -> str:
    # (Sums of hostile numbers can be beyond any type: they end at its bounds.)
    if sql_type not in _WHOLE:
        return f'"{name}"'
    low, high = _WHOLE[sql_type]
    return f'CASE WHEN "{name}" IS NOT NULL THEN greatest(least("{name}", {high}), {low})::{sql_type} END AS "{name}"'


@cache
def _sql(name: str) -> str:
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").strip()
