"""Fills the tables of history: finds the hours and days that are due, reads what they need, commits their rows.

What is due is a pure function of counts (`streaming.history`), and these come from the Delta log wherever it has them:
a day of which nothing is new is not opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import write_deltalake

from streaming.history import (
    DEFINITION,
    HistorySpan,
    WrittenSpan,
    due_days,
    due_hours,
    group_days,
    group_hours,
    partition_hours,
    rounds_around,
)
from streaming.maintain.engines import WRITER, Done
from streaming.tables import DAY, HISTORY_TABLES, DataFile, DeltaLake, OpenedTable, computed, widened

_SOURCES = ("group_health", "rebalance_churn", "drift")
# Not `Table.time`: a verdict belongs to the hour of its decision.
_TIMES = {"group_health": "round_time", "rebalance_churn": "record_time", "drift": "record_time"}

ROLLED_UP = frozenset({*_SOURCES, "lag", "rounds"})
"""Tables whose rows history needs."""

_PARTITIONS, _HOURLY, _DAILY = (table.name for table in HISTORY_TABLES)

# Rows of files that a query reads at once: these take about half a gigabyte, and more parts read the files more often.
_PART_ROWS = 1_500_000

# Clusters whose newest round is older than this have closed all their hours.
_SILENT = timedelta(days=2)


class RollUps:
    """The history of one lake. Not thread-safe."""

    def __init__(self, lake: str, opened: Callable[[str], OpenedTable], carry_ms: int, now: Callable[[], int]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            opened: Opens a table by name.
            carry_ms: How old a value can be that an hour begins with, ms.
            now: The clock, ms since the epoch.
        """
        self._lake = lake
        self._opened = opened
        self._carry_ms = carry_ms
        self._now = now
        self._incomplete: dict[HistorySpan, int] = {}
        self._settled: dict[date, tuple[int, datetime]] = {}

    def work(self, today: Callable[[], date]) -> Iterator[Done]:
        """Compute what is due, an hour or a day at a time, until nothing is.

        Args:
            today: Gives the newest day of the lake (`today_of`).
        """
        while due := self._find_due(today()):
            DeltaLake(self._lake).create(HISTORY_TABLES)
            for span, rows in due.items():
                yield self._hour(span, rows) if isinstance(span.start, datetime) else self._day(span)

    def owed(self) -> set[date]:
        """Days that have rows without history: retention has to wait for it.

        Days for which the last look found nothing more to compute are left out.
        """
        counted = self._counted()
        written: dict[date, int] = defaultdict(int)
        for span, there in self._written(_DAILY, min(counted, default=date.max)).items():
            written[span.day] += there.source_rows
        return {
            day for day, rows in counted.items() if rows > written[day] and self._settled.get(day, (None,))[0] != rows
        }

    def _hour(self, span: HistorySpan, source_rows: int) -> Done:
        hour, cluster, day = span.start, span.cluster, span.day
        assert isinstance(hour, datetime)  # noqa: S101 - `work` passes hours only
        days = sorted({self._day_before(cluster, day), day})
        steps = rounds_around(self._rows("rounds", *days), cluster, hour, self._carry_ms)
        bounds = pc.min_max(steps["round"]).as_py() if steps.num_rows else None
        rounds = None if bounds is None else (bounds["min"], bounds["max"])
        sources = {
            "group_health": self._rows("group_health", *days, rounds=rounds),
            "rebalance_churn": self._rows("rebalance_churn", day),
            "drift": self._rows("drift", day),
        }
        groups = group_hours(sources, steps, cluster, hour)
        if (pc.sum(groups["source_rows"]).as_py() or 0) != source_rows:
            # Rows without rounds, as after a table was deleted: computing them again would give the same.
            self._incomplete[span] = source_rows
        where, written = f"{of_cluster(cluster)} AND hour = '{hour:%Y-%m-%dT%H:%M:%SZ}'", 0
        if rounds is not None and self._files("lag", day):
            files = [file for one in days for file in self._files("lag", one, rounds)]
            parts = max(1, -(-sum(file.rows or 0 for file in files) // _PART_ROWS))
            lag = self._rows("lag", *days, rounds=rounds)
            written = put(self._opened(_PARTITIONS), day, partition_hours(lag, steps, cluster, hour, parts), where)
        # `group_hourly` comes last: it says that the hour is done.
        written += put(self._opened(_HOURLY), day, groups, where)
        return Done(_HOURLY, "history", day, hour, rows=written)

    def _day(self, span: HistorySpan) -> Done:
        rows = group_days(self._rows(_HOURLY, span.day), span.cluster, span.day)
        written = put(self._opened(_DAILY), span.day, rows, of_cluster(span.cluster))
        return Done(_DAILY, "history", span.day, rows=written)

    def _files(self, name: str, day: date, rounds: tuple[int, int] | None = None) -> list[DataFile]:
        return self._opened(name).files((day, day), rounds=rounds)

    def _rows(self, name: str, *days: date, rounds: tuple[int, int] | None = None) -> ds.Dataset:
        files = [file for day in days for file in self._files(name, day, rounds)]
        return self._opened(name).rows(files, encoded=True)

    def _day_before(self, cluster: str, day: date) -> date:
        """The last day before another on which a cluster had a round; that other day where there is none."""
        files = self._opened("rounds").files((date.min, day - timedelta(days=1)), cluster)
        ours = pc.field("cluster") == cluster
        of_cluster = (
            one
            for one in sorted({file.day for file in files if file.day is not None}, reverse=True)
            if self._rows("rounds", one).head(1, columns=["cluster"], filter=ours).num_rows
        )
        return next(of_cluster, day)

    def _find_due(self, today: date) -> dict[HistorySpan, int]:
        """What is due, with the rows by which it was found: hours, then days all of whose hours are done."""
        newest = self._newest_rounds(today)
        now = datetime.fromtimestamp(self._now() / 1000, UTC)
        counted = self._counted()
        daily = self._written(_DAILY, min(counted, default=date.max))
        hours: dict[HistorySpan, int] = {}
        days: dict[HistorySpan, int] = {}
        for day, rows in self._unsettled(counted, daily).items():
            # A row without a valid time belongs to no hour, so its day differs for good: it is opened once an hour.
            state = (rows, now.replace(minute=0, second=0, microsecond=0))
            if day != today and self._settled.get(day) == state:
                continue
            hourly = self._written(_HOURLY, day, day)
            sources = self._rows_by_hour(day)
            found = due_hours(sources, hourly, newest, now)
            hours |= {span: sources[span] for span in found}
            if not found:
                self._settled[day] = state
                days |= dict.fromkeys(due_days(_by_day(hourly), daily, newest, now), rows)
        return hours | days

    def _unsettled(self, counted: Mapping[date, int], daily: Mapping[HistorySpan, WrittenSpan]) -> dict[date, int]:
        """Days whose source rows, counted by the log, are not all in `group_daily`: with their number."""
        have_hours = {file.day for file in self._opened(_HOURLY).files()}
        written: dict[date, int] = defaultdict(int)
        for span, there in daily.items():
            if there.definition == DEFINITION:
                written[span.day] += there.source_rows
        return {day: rows for day, rows in sorted(counted.items()) if written[day] < rows or day not in have_hours}

    def _counted(self) -> dict[date, int]:
        """Source rows by day, as the log counts them, of days that have not passed their retention."""
        health, *others = (self._opened(name).files() for name in _SOURCES)
        counted: dict[date, int] = defaultdict(int)
        days = {file.day for file in health}
        for file in (*health, *(file for files in others for file in files)):
            if file.day is not None and file.day in days:
                counted[file.day] += file.rows or 0
        return counted

    def _newest_rounds(self, today: date) -> dict[str, datetime]:
        """Time of the newest round, by number, of each cluster that has one of the last days."""
        rounds = self._opened("rounds")
        recent = rounds.rows(rounds.files((today - _SILENT, date.max)), encoded=True)
        sql = "SELECT cluster, max_by(round_time, round) AS time FROM rounds GROUP BY cluster HAVING time IS NOT NULL"
        return {row["cluster"]: row["time"] for row in computed({"rounds": recent}, sql).to_pylist()}

    def _rows_by_hour(self, day: date) -> dict[HistorySpan, int]:
        """Rows of the sources by hour of a day, but for hours that could not be completed the last time."""
        counted: dict[HistorySpan, int] = defaultdict(int)
        for name, time in _TIMES.items():
            sql = (
                f"SELECT cluster, date_trunc('hour', {time}) AS hour, count(*) AS rows FROM source "  # noqa: S608
                f"WHERE {time} IS NOT NULL GROUP BY ALL"
            )
            for row in computed({"source": self._rows(name, day)}, sql).to_pylist():
                counted[HistorySpan(row["hour"], row["cluster"])] += row["rows"]
        # A row's event_date is the day of its time, unless another program has written it.
        return {span: rows for span, rows in counted.items() if span.day == day and self._incomplete.get(span) != rows}

    def _written(self, name: str, first: date, last: date = date.max) -> dict[HistorySpan, WrittenSpan]:
        """What a table of history has, by hour or day."""
        opened = self._opened(name)
        start = DAY if name == _DAILY else "hour"
        sql = (
            f"SELECT cluster, {start} AS begin, sum(source_rows)::BIGINT AS rows, min(definition) AS definition "  # noqa: S608
            "FROM history GROUP BY ALL"
        )
        found = computed({"history": opened.rows(opened.files((first, last)), encoded=True)}, sql)
        return {
            HistorySpan(row["begin"], row["cluster"]): WrittenSpan(row["rows"], row["definition"])
            for row in found.to_pylist()
        }


def put(opened: OpenedTable, day: date, rows: pa.Table, where: str) -> int:
    """Write rows of one day in place of those that a condition names, in one commit; returns their number.

    Args:
        opened: The table.
        day: The day.
        rows: The new rows, all columns.
        where: Which rows of the day they replace, as SQL.
    """
    opened.refresh()  # it may have been created a moment ago
    if rows.num_rows or opened.files((day, day)):
        write_deltalake(
            opened.delta,
            widened(rows, opened.delta),
            mode="overwrite",
            predicate=f"{DAY} = '{day}' AND {where}",
            writer_properties=WRITER,
        )
        opened.refresh()
    return int(rows.num_rows)


def of_cluster(cluster: str) -> str:
    """Which rows are a cluster's, as SQL of delta-rs."""
    name = cluster.replace("'", "''")
    return f"cluster = '{name}'"


def _by_day(hourly: Mapping[HistorySpan, WrittenSpan]) -> dict[HistorySpan, WrittenSpan]:
    days: dict[HistorySpan, WrittenSpan] = {}
    for span, there in hourly.items():
        day = HistorySpan(span.day, span.cluster)
        before = days.get(day, WrittenSpan(0, there.definition))
        days[day] = WrittenSpan(before.source_rows + there.source_rows, min(before.definition, there.definition))
    return days
