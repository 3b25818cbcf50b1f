"""Which hours and days of history are to be computed, by counts alone, and their rows, by DuckDB.

Rows are only appended, and deleted by whole days, so a span that has more source rows than when it was computed got
late ones, and one that nobody has computed has none. Nothing else is kept of what was done: a lost table fills itself
again from what the lake still has, and a crash between two commits leaves a span that is due.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.tables import computed, table_named

DEFINITION: Final = 4
"""Version of the definitions: what was computed by an older one is computed again, as far as its rows are kept."""

HOUR: Final = timedelta(hours=1)

# An hour waits for this long after its end: most decisions know their cost by then, so few are computed twice.
_GRACE: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class HistorySpan:
    """An hour or a day of one cluster.

    Attributes:
        start: Its beginning, UTC: a datetime for an hour, a date for a day.
        cluster: The cluster.
    """

    start: datetime | date
    cluster: str

    @property
    def day(self) -> date:
        """Its day."""
        if isinstance(self.start, datetime):
            return self.start.date()
        return self.start


@dataclass(frozen=True, slots=True)
class WrittenSpan:
    """What a table of history has of a span.

    Attributes:
        source_rows: Sum of `source_rows`.
        definition: The lowest `definition`.
    """

    source_rows: int
    definition: int


def due_hours(
    sources: Mapping[HistorySpan, int],
    written: Mapping[HistorySpan, WrittenSpan],
    newest: Mapping[str, datetime],
    now: datetime,
) -> list[HistorySpan]:
    """Hours to be computed, in the order in which to do it.

    Args:
        sources: Rows by hour.
        written: What is there by hour.
        newest: Time of each cluster's newest round, by number.
        now: The clock: an hour of a cluster that has been silent for a day is closed, too.

    Returns:
        First those that are there already and got late rows, the latest first; then new ones, the oldest first. An hour
        begins with values of the one before, so the one after a late hour is computed again, too. It comes before it:
        wherever the work ends, the earlier one is still due, and brings the later one with it.
    """
    again: set[HistorySpan] = set()
    new: list[HistorySpan] = []
    for span, rows in sources.items():
        if not _is_closed(span, HOUR, newest, now) or not _is_due(rows, written.get(span)):
            continue
        if span not in written:
            new.append(span)
            continue
        again.add(span)
        after = HistorySpan(span.start + HOUR, span.cluster)
        if after in written and after in sources:
            again.add(after)
    return [*sorted(again, key=_order, reverse=True), *sorted(new, key=_order)]


def due_days(
    hourly: Mapping[HistorySpan, WrittenSpan],
    daily: Mapping[HistorySpan, WrittenSpan],
    newest: Mapping[str, datetime],
    now: datetime,
) -> list[HistorySpan]:
    """Days to be computed from hours, the oldest first.

    Args:
        hourly: What `group_hourly` has, by day.
        daily: What `group_daily` has.
        newest: As in `due_hours`.
        now: As in `due_hours`.
    """
    due = (
        span
        for span, hours in hourly.items()
        if _is_closed(span, timedelta(days=1), newest, now) and _is_due(hours.source_rows, daily.get(span))
    )
    return sorted(due, key=_order)


def _order(span: HistorySpan) -> tuple[datetime | date, str]:
    return span.start, span.cluster


def _is_closed(span: HistorySpan, length: timedelta, newest: Mapping[str, datetime], now: datetime) -> bool:
    start = span.start
    if not isinstance(start, datetime):
        start = datetime(start.year, start.month, start.day, tzinfo=now.tzinfo)
    end = start + length + _GRACE
    last = newest.get(span.cluster)
    return (last is not None and last >= end) or now >= end + timedelta(days=1)


def _is_due(source_rows: int, there: WrittenSpan | None) -> bool:
    return there is None or there.source_rows < source_rows or there.definition < DEFINITION


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
    return computed({"rounds": rounds}, _sql("steps"), {"cluster": cluster, "hour": hour, "carry_ms": carry_ms})


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
    sql = f"SELECT {columns} FROM ({_sql(name)})"  # noqa: S608
    found = computed(sources, sql, {**asked, "definition": DEFINITION})
    return found.cast(pa.schema([field.remove_metadata() for field in table.arrow_schema]))


def _bounded(name: str, sql_type: str) -> str:
    # Sums of hostile numbers can be beyond any type: they end at its bounds.
    if sql_type not in _WHOLE:
        return f'"{name}"'
    low, high = _WHOLE[sql_type]
    return f'CASE WHEN "{name}" IS NOT NULL THEN greatest(least("{name}", {high}), {low})::{sql_type} END AS "{name}"'


@cache
def _sql(name: str) -> str:
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8").strip()
