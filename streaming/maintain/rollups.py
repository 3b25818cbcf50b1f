"""Fills the tables of history: finds the hours and days that are due, reads what they need, commits their rows.

What is due is a pure function of counts (`streaming.history`), and these come from the Delta log wherever it has them:
a day of which nothing is new is not opened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.history import (
    DEFINITION,
    HistorySpan,
    Sources,
    WrittenSpan,
    due_days,
    due_hours,
    group_days,
    group_hours,
    partition_hours,
    rounds_around,
)
from streaming.maintain.table.delta_table import MaintainedTable
from streaming.tables import DAY, HISTORY_TABLES, DeltaLake, limited, table_named

_SOURCES = {"group_health": "round_time", "rebalance_churn": "record_time", "drift": "record_time"}
ROLLED_UP = frozenset({*_SOURCES, "lag", "rounds"})
"""Tables whose rows history needs."""

_PARTITIONS, _HOURLY, _DAILY = (table.name for table in HISTORY_TABLES)

# Rows of files that a query reads at once: these take about half a gigabyte, and more parts read the files more often.
_PART_ROWS = 1_500_000

# Clusters whose newest round is older than this have closed all their hours.
_SILENT = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of one cluster that is to be computed.

    Attributes:
        cluster: The cluster.
        start: Beginning of the hour, UTC.
        since: The day of the cluster's last round before the hour's day; its rows are read, too. The hour's own day
            where there is none.
        steps: The rounds that matter, as `rounds_around` gives them.
        with_partitions: Whether the rows of `lag` are still kept.
        files: Files that will be read.
        rows: Their rows.
        source_rows: Rows by which it was found due.
    """

    cluster: str
    start: datetime
    since: date
    steps: pa.Table
    with_partitions: bool
    files: int
    rows: int
    source_rows: int

    @property
    def day(self) -> date:
        """The day of the hour."""
        return self.start.date()


@dataclass(frozen=True, slots=True)
class Day:
    """A day of one cluster that is to be computed from its hours.

    Attributes:
        cluster: The cluster.
        day: The day.
        files: Files that will be read.
        rows: Their rows.
    """

    cluster: str
    day: date
    files: int
    rows: int


@dataclass(frozen=True, slots=True)
class RolledUp:
    """What was written of an hour or day: rows, and their bytes."""

    rows: int
    size: int


class RollUps:
    """The history of one lake. Not thread-safe."""

    def __init__(
        self,
        lake: str,
        opened: Callable[[str], MaintainedTable | None],
        keep_days: Mapping[str, int],
        carry_ms: int,
        now: Callable[[], int],
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            opened: Opens a table by name; None when it is not there.
            keep_days: Days that each table keeps.
            carry_ms: How old a value can be that an hour begins with, ms.
            now: The clock, ms since the epoch.
        """
        self._lake = lake
        self._opened = opened
        self._keep = keep_days
        self._carry_ms = carry_ms
        self._now = now
        self._today: date | None = None
        self._due: list[HistorySpan] = []
        self._source_rows: dict[HistorySpan, int] = {}
        self._days_before: dict[tuple[str, date], date] = {}
        self._incomplete: dict[HistorySpan, int] = {}
        self._settled: dict[date, tuple[int, datetime]] = {}
        self._written_by_day: tuple[tuple[date, frozenset[str]], dict[date, int]] | None = None
        self._created = False

    def next(self, today: date) -> Hour | Day | None:
        """What to compute next; None when nothing is due. Looks at the lake once all of the last look is done.

        Args:
            today: The newest day of the lake (`today_of`).
        """
        if today != self._today:
            # What was due on another day may have lost its rows since: retention deletes more with each day.
            self._today, self._due, self._settled = today, [], {}
        if not self._due:
            self._due = self._look(today)
        if not self._due:
            return None
        span = self._due[0]
        return self._hour(span.cluster, span.start) if isinstance(span.start, datetime) else self._day(span)

    def owed(self) -> set[date]:
        """Days that have rows without history, and of which nothing was deleted: retention has to wait for it.

        Days for which the last look found nothing more to compute are left out.
        """
        health = self._opened("group_health")
        files = health.files() if health is not None else []
        untouched = {file.day for file in files} - {file.day for file in files if file.looked_at is not None}
        if not untouched:
            return set()
        counted, written = self._counted(), self._daily_rows(min(untouched))
        return {
            day
            for day in untouched
            if counted[day] > written.get(day, 0) and self._settled.get(day, (None,))[0] != counted[day]
        }

    def forget(self) -> None:
        """Forget what was due and which tables exist: after a failed piece, a table may have been deleted."""
        self._due, self._settled, self._incomplete = [], {}, {}
        self._written_by_day, self._created = None, False

    def do(self, due: Hour | Day) -> RolledUp:
        """Compute an hour or day, and write its rows.

        Raises:
            MaintenanceError: A table is written all the time, so nothing could be committed.
        """
        if not self._created:
            # (Tables of an older release get the columns that they lack.)
            DeltaLake(self._lake).create(HISTORY_TABLES)
            self._created = True
        written = self._do_day(due) if isinstance(due, Day) else self._do_hour(due)
        self._due.pop(0)
        return written

    def _do_hour(self, due: Hour) -> RolledUp:
        cluster, hour, rounds = due.cluster, due.start, _bounds(due.steps)
        stale = (pc.field("cluster") == cluster) & (pc.field("hour") == pa.scalar(hour, pa.timestamp("us", "UTC")))
        sources = Sources(
            self._rows_of_days("group_health", due.since, due.day, rounds),
            self._rows_of("rebalance_churn", due.day, due.day),
            self._rows_of("drift", due.day, due.day),
        )
        groups = group_hours(sources, due.steps, cluster, hour)
        span, found = HistorySpan(hour, cluster), pc.sum(groups["source_rows"]).as_py() or 0
        if found != due.source_rows:
            # (Rows without rounds, as after a table was deleted: computing them again would give the same.)
            self._incomplete[span] = due.source_rows
            if _has_more(self._written(_HOURLY, due.day, due.day), span, found):
                return RolledUp(0, 0)
        first = RolledUp(0, 0)
        if due.with_partitions and rounds is not None:
            lag = self._rows_of_days("lag", due.since, due.day, rounds)
            parts = max(1, -(-due.rows // _PART_ROWS))
            first = self._put(_PARTITIONS, due.day, partition_hours(lag, due.steps, cluster, hour, parts), stale)
        # `group_hourly` comes last: it says that the hour is done.
        then = self._put(_HOURLY, due.day, groups, stale)
        return RolledUp(first.rows + then.rows, first.size + then.size)

    def _do_day(self, due: Day) -> RolledUp:
        found = group_days(self._rows_of(_HOURLY, due.day, due.day), due.cluster, due.day)
        return self._put(_DAILY, due.day, found, pc.field("cluster") == due.cluster)

    def _put(self, name: str, day: date, rows: pa.Table, stale: ds.Expression) -> RolledUp:
        table = self._opened(name)
        assert table is not None  # noqa: S101 - `do` has created it
        if not rows.num_rows and not any(file.day == day for file in table.files()):
            return RolledUp(0, 0)
        return RolledUp(rows.num_rows, table.put(day, rows, stale))

    def _rows_of(self, name: str, first: date, last: date, rounds: tuple[int, int] | None = None) -> ds.Dataset:
        table = self._opened(name)
        if table is None:
            return ds.dataset(table_named(name).arrow_schema.empty_table())
        return table.rows_of(first, last, rounds)

    def _rows_of_days(self, name: str, since: date, day: date, rounds: tuple[int, int] | None = None) -> ds.Dataset:
        """Rows of two days, without those between them."""
        return ds.dataset([self._rows_of(name, one, one, rounds) for one in sorted({since, day})])

    def _day_before(self, cluster: str, day: date) -> date:
        """The last day before another on which a cluster had a round; that other day where there is none.

        As far back as rows of `group_health` are kept: a cluster that is new may have no round in years of others.
        """
        if (cluster, day) not in self._days_before:
            rounds = self._opened("rounds")
            first = day - timedelta(days=self._keep["group_health"])
            days = {file.day for file in rounds.files() if first <= file.day < day} if rounds is not None else set()
            ours = pc.field("cluster") == cluster
            of_cluster = (one for one in sorted(days, reverse=True) if _any(self._rows_of("rounds", one, one), ours))
            self._days_before[cluster, day] = next(of_cluster, day)
        return self._days_before[cluster, day]

    def _hour(self, cluster: str, hour: datetime) -> Hour:
        day = hour.date()
        since = self._day_before(cluster, day)
        steps = rounds_around(self._rows_of_days("rounds", since, day), cluster, hour, self._carry_ms)
        files = rows = 0
        lag = self._opened("lag")
        of_lag = [file for file in lag.files() if file.day == day] if lag is not None else []
        with_partitions = bool(of_lag) and all(file.looked_at is None for file in of_lag)
        if (bounds := _bounds(steps)) is not None:
            for name in ("lag", "group_health") if with_partitions else ("group_health",):
                if (table := self._opened(name)) is not None:
                    for one in {since, day}:
                        more_files, more_rows = table.weight_of(one, one, bounds)
                        files, rows = files + more_files, rows + more_rows
        source_rows = self._source_rows.get(HistorySpan(hour, cluster), 0)
        return Hour(cluster, hour, since, steps, with_partitions, files, rows, source_rows)

    def _day(self, span: HistorySpan) -> Day:
        hourly = self._opened(_HOURLY)
        files = [file for file in hourly.files() if file.day == span.start] if hourly is not None else []
        return Day(span.cluster, span.day, len(files), sum(file.rows for file in files))

    def _look(self, today: date) -> list[HistorySpan]:
        """What is due: hours, then days all of whose hours are done."""
        newest = self._newest_rounds(today)
        now = datetime.fromtimestamp(self._now() / 1000, UTC)
        # Late rows count as long as all rows are kept. (The first day may lack the values that it began with.)
        first = today - timedelta(days=min(self._keep[name] for name in _SOURCES) - 1)
        owed = self.owed()
        daily = self._written(_DAILY, min(owed | {first}))
        self._source_rows, self._days_before = {}, {}
        hours: list[HistorySpan] = []
        days: list[HistorySpan] = []
        for day, rows in self._unsettled(first, owed, daily).items():
            # (A row without a valid time belongs to no hour, so its day differs for good: it is opened once an hour.)
            state = (rows, now.replace(minute=0, second=0, microsecond=0))
            if day != today and self._settled.get(day) == state:
                continue
            hourly = self._written(_HOURLY, day, day)
            # Where retention has been, what it has left says less than what is written: a longer one may be set now.
            sources = {
                span: rows for span, rows in self._rows_by_hour(day).items() if not _has_more(hourly, span, rows)
            }
            found = due_hours(sources, hourly, newest, now)
            if day < first:
                found = [span for span in found if span not in hourly]
            self._source_rows |= sources
            hours += found
            if not found:
                self._settled[day] = state
                days += due_days(_by_day(hourly), daily, newest, now)
        return [*hours, *days]

    def _unsettled(
        self, first: date, owed: Collection[date], daily: Mapping[HistorySpan, WrittenSpan]
    ) -> dict[date, int]:
        """Days whose source rows, counted by the log, are not all in `group_daily`: with their number."""
        counted = {day: rows for day, rows in self._counted().items() if day >= first or day in owed}
        hourly = self._opened(_HOURLY)
        have_hours = {file.day for file in hourly.files()} if hourly is not None else set()
        written: dict[date, int] = defaultdict(int)
        for span, there in daily.items():
            if there.definition == DEFINITION:
                written[span.day] += there.source_rows
        return {day: rows for day, rows in sorted(counted.items()) if written[day] != rows or day not in have_hours}

    def _counted(self) -> dict[date, int]:
        """Source rows by day, as the log counts them."""
        counted: dict[date, int] = defaultdict(int)
        for name in _SOURCES:
            if (table := self._opened(name)) is not None:
                for file in table.files():
                    counted[file.day] += file.rows
        return counted

    def _daily_rows(self, first: date) -> dict[date, int]:
        """Source rows by day, as `group_daily` sums them up; read again once the table has changed."""
        daily = self._opened(_DAILY)
        state = first, frozenset(file.path for file in daily.files() if file.day >= first) if daily else frozenset()
        if self._written_by_day is None or self._written_by_day[0] != state:
            rows: dict[date, int] = defaultdict(int)
            for span, there in self._written(_DAILY, first).items():
                rows[span.day] += there.source_rows
            self._written_by_day = state, rows
        return self._written_by_day[1]

    def _newest_rounds(self, today: date) -> dict[str, datetime]:
        """Time of the newest round, by number, of each cluster that has one of the last days."""
        with limited() as connection:
            connection.register("rounds", self._rows_of("rounds", today - _SILENT, date.max))
            found = connection.sql("SELECT cluster, max_by(round_time, round) FROM rounds GROUP BY cluster").fetchall()
        return {cluster: time for cluster, time in found if time is not None}

    def _rows_by_hour(self, day: date) -> dict[HistorySpan, int]:
        """Rows of the sources by hour of a day, but for hours that could not be completed the last time."""
        counted: dict[HistorySpan, int] = defaultdict(int)
        for name, time in _SOURCES.items():
            with limited() as connection:
                connection.register("source", self._rows_of(name, day, day))
                sql = f"SELECT cluster, date_trunc('hour', {time}) AS hour, count(*) FROM source GROUP BY ALL"  # noqa: S608
                for cluster, hour, rows in connection.sql(sql).fetchall():
                    if hour is not None:
                        counted[HistorySpan(hour, cluster)] += rows
        # (A row's event_date is the day of its time; where somebody else has written it, it need not be.)
        return {span: rows for span, rows in counted.items() if span.day == day and self._incomplete.get(span) != rows}

    def _written(self, name: str, first: date, last: date = date.max) -> dict[HistorySpan, WrittenSpan]:
        """What a table of history has, by hour or day."""
        start = DAY if name == _DAILY else "hour"
        sql = f"SELECT cluster, {start}, sum(source_rows)::BIGINT, min(definition) FROM history GROUP BY ALL"  # noqa: S608
        with limited() as connection:
            connection.register("history", self._rows_of(name, first, last))
            found = connection.sql(sql).fetchall()
        return {
            HistorySpan(begin, cluster): WrittenSpan(rows, definition) for cluster, begin, rows, definition in found
        }


def _bounds(steps: pa.Table) -> tuple[int, int] | None:
    """First and last round that matter; None where no round is in the hour."""
    if not steps.num_rows:
        return None
    bounds = pc.min_max(steps["round"]).as_py()
    return bounds["min"], bounds["max"]


def _by_day(hourly: Mapping[HistorySpan, WrittenSpan]) -> dict[HistorySpan, WrittenSpan]:
    days: dict[HistorySpan, WrittenSpan] = {}
    for span, there in hourly.items():
        day = HistorySpan(span.day, span.cluster)
        before = days.get(day, WrittenSpan(0, there.definition))
        days[day] = WrittenSpan(before.source_rows + there.source_rows, min(before.definition, there.definition))
    return days


def _has_more(written: Mapping[HistorySpan, WrittenSpan], span: HistorySpan, rows: int) -> bool:
    """Whether a span was computed from more rows than there are now. Rows are only appended, so some were deleted."""
    return span in written and written[span].source_rows > rows


def _any(rows: ds.Dataset, only: ds.Expression) -> bool:
    return bool(rows.head(1, columns=["cluster"], filter=only).num_rows)
