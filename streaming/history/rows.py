"""The rows of one hour or day, computed by DuckDB from what the tables say of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.history.due import DEFINITION
from streaming.tables import fetched_few, limited, table_named

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
    return _computed("group_hourly", {**sources, "steps": steps}, cluster=cluster, hour=hour)


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
    asked = {"cluster": cluster, "hour": hour, "first_round": bounds["min"], "last_round": bounds["max"]}
    sources = {"steps": steps, "lag": lag}
    return pa.concat_tables(
        [_computed("partition_hourly", sources, **asked, part=part, parts=parts) for part in range(parts)]
    )


def group_days(hours: ds.Dataset, cluster: str, day: date) -> pa.Table:
    """Rows of `group_daily` for one day of one cluster.

    Args:
        hours: Rows of `group_hourly`.
        cluster: The cluster.
        day: The day.
    """
    return _computed("group_daily", {"group_hourly": hours}, cluster=cluster, day=day)


def _computed(name: str, sources: Mapping[str, ds.Dataset | pa.Table], **asked: Any) -> pa.Table:
    """Rows of a table of history, by the query of its name over some tables."""
    table = table_named(name)
    columns = ", ".join(_bounded(column.name, column.type.sql) for column in table.columns)
    with limited() as connection:
        for source, rows in sources.items():
            connection.register(source, rows)
        sql = f"SELECT {columns} FROM ({_sql(name)})"  # noqa: S608
        found = fetched_few(connection, sql, {**asked, "definition": DEFINITION})
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
