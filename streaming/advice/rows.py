"""The advice of one day of one cluster: DuckDB fetches what the rules look at, and the rules decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from msgspec import convert

from streaming.advice.period import Advice, Period
from streaming.advice.rebalances import COOPERATIVE, cooperative, static_membership, strategy
from streaming.advice.run import PERIOD
from streaming.advice.shape import abandoned, declare_clients, hot_partition, offsets_expire, too_many_members
from streaming.tables import fetched_few, limited, table_named

_FOLDER = Path(__file__).parent

KINDS: Final = (
    "static_membership", "cooperative", "strategy", "too_many_members", "hot_partition", "offsets_expire",
    "declare_clients", "abandoned",
)  # fmt: skip
"""Every kind of advice, in the order in which a group's are listed."""


def advise(period: Period) -> list[Advice]:
    """Everything that holds for a group at the end of a day, at most one of each kind.

    Where two would contradict each other, one is left out: a group that nobody is in gets no other advice, and
    `strategy` names what `cooperative` names.
    """
    if (gone := abandoned(period)) is not None:
        return [gone]
    stops = cooperative(period)
    other = strategy(period, only=None if stops is None else COOPERATIVE)
    found = (
        static_membership(period),
        stops,
        other,
        too_many_members(period),
        hot_partition(period),
        offsets_expire(period),
        declare_clients(period),
    )
    return [one for one in found if one is not None]


OF_PERIOD: Final = ("group_daily", "rebalance_churn", "drift", "members", "what_if", "partition_hourly")
"""Tables of which the rules look at the whole period."""

OF_LAST_DAY: Final = ("group_health", "rounds")
"""Tables of which they look at its last day alone."""


def advice_of_day(
    sources: Mapping[str, ds.Dataset], before: pa.Table, cluster: str, day: date, period_days: int, parts: int = 1
) -> tuple[pa.Table, int]:
    """Find the rows of `advice` for one day of one cluster, one part of its groups after the other.

    Args:
        sources: The rows, by the names of `OF_PERIOD` and `OF_LAST_DAY`.
        before: Rows of `advice` for the last day before it that was looked at.
        cluster: The cluster.
        day: The day.
        period_days: Days of the period that have figures.
        parts: In how many parts: less memory for more time.

    Returns:
        Rows of `advice`, and how many groups were looked at.
    """
    held = {(row["group_id"], row["kind"]): row for row in before.to_pylist() if not row["ended"]}
    rows = []
    groups = 0
    with limited() as connection:
        for name, given in sources.items():
            connection.register(name, given)
        for part in range(parts):
            for period in _periods(connection, {"cluster": cluster, "part": part, "parts": parts}, day):
                groups += 1
                for advice in advise(period):
                    last = held.pop((period.group_id, advice.kind), None)
                    since = last["since"] if last is not None and _follows(day, last["event_date"]) else day
                    rows.append(_row(advice, cluster, period.group_id, day, since, period_days))
    rows += [{**last, "event_date": day, "ended": True} for _, last in sorted(held.items())]
    schema = pa.schema([field.remove_metadata() for field in table_named("advice").arrow_schema])
    return pa.Table.from_pylist(rows, schema), groups


def _follows(day: date, before: date) -> bool:
    """Whether each day between two that were looked at was in the period of one of them."""
    return (day - before).days <= PERIOD


def _row(advice: Advice, cluster: str, group_id: str, day: date, since: date, period_days: int) -> dict[str, Any]:
    return {
        **asdict(advice),
        "cluster": cluster,
        "group_id": group_id,
        "event_date": day,
        "ended": False,
        "since": since,
        "period_days": period_days,
        "details": [{"name": name, "value": value} for name, value in advice.details],
    }


def _periods(connection: duckdb.DuckDBPyConnection, given: Mapping[str, Any], day: date) -> Iterator[Period]:
    parts: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name in ("rebalances", "members", "tried", "produced"):
        by_group = parts[name] = defaultdict(list)
        for row in _rows(connection, name, given):
            by_group[row["group_id"]].append(row)
    for group in _rows(connection, "groups", {**given, "day": day}):
        of_group = {name: rows[group["group_id"]] for name, rows in parts.items()}
        members = {row["member_id"]: row for row in of_group["members"]}
        produced = next(iter(of_group["produced"]), None)
        yield convert({**group, **of_group, "day": day, "members": members, "produced": produced}, Period)


def _rows(connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = fetched_few(connection, _sql(name), given).to_pylist()
    return rows


@cache
def _sql(name: str) -> str:
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").strip()
