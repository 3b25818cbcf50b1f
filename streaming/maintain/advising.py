"""Fills the tables of advice: finds the days that are due, reads what the rules need, commits the rows.

What is due is a pure function of sums (`streaming.advice`), and a look at the lake is made only when history has
changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.advice import (
    AGAIN_DAYS,
    DEFINITION,
    PERIOD,
    AdviceOfDay,
    AdviceSources,
    AdvisedDay,
    advice_of_day,
    carried,
    day_before,
    days_due,
    period_of,
    source_rows,
)
from streaming.maintain.table.delta_table import MaintainedTable
from streaming.tables import ADVICE_TABLES, HISTORY_TABLES, DeltaLake, limited, table_named

_ADVICE, _DAYS = (table.name for table in ADVICE_TABLES)
_HISTORY = HISTORY_TABLES[-1].name

# What a period of the rules reads, and what of its last day only.
_READ = (_HISTORY, "rebalance_churn", "drift", "members", "what_if", "partition_hourly")
_READ_LAST = ("group_health", "rounds")

# Rows of files for which the groups are worked on in one part, which is a piece: it takes 3 to 4 s and half a gigabyte.
# With more parts the files are read more often.
_PART_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Advised:
    """A day of one cluster that is to be looked at for advice, or the next part of its groups.

    Attributes:
        cluster: The cluster.
        day: The day.
        period: Days of the period that have figures, the oldest first.
        before: The day that was looked at before it; None for the first.
        source_rows: Rows of its history, by which it was found due.
        carried: The sum over the advice of the day before.
        files: Files that will be read.
        rows: Their rows, divided by the parts.
        parts: Into how many parts the groups are divided.
    """

    cluster: str
    day: date
    period: tuple[date, ...]
    before: date | None
    source_rows: int
    carried: int
    files: int = 0
    rows: int = 0
    parts: int = 1


class Advising:
    """The advice of one lake. Not thread-safe."""

    def __init__(
        self, lake: str, opened: Callable[[str], MaintainedTable | None], keep_days: Mapping[str, int]
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            opened: Opens a table by name; None when it is not there.
            keep_days: Days that each table keeps.
        """
        self._lake = lake
        self._opened = opened
        # (A period must be whole: where its rows were deleted, its day is no longer looked at.)
        self._back = min(AGAIN_DAYS, *(keep_days[name] - PERIOD for name in (*_READ, "group_health")))
        self._today: date | None = None
        self._due: list[Advised] = []
        self._under_way: Iterator[AdviceOfDay | None] | None = None
        self._settled: tuple[frozenset[str], ...] | None = None
        self._created = False

    def next(self, today: date) -> Advised | None:
        """What to look at next; None when nothing is due.

        Args:
            today: The newest day of the lake (`today_of`).
        """
        if today != self._today:
            # (Retention may have deleted since what was due on another day would read.)
            self.forget()
            self._today = today
        if not self._due:
            self._due = self._look(today)
        if not self._due:
            return None
        due = self._due[0]
        files = rows = 0
        for name in _READ:
            more_files, more_rows = self._weight(name, due.period[0], due.day)
            files, rows = files + more_files, rows + more_rows
        more_files, more_rows = self._weight("group_health", due.day, due.day)
        parts = max(1, -(-(rows + more_rows) // _PART_ROWS))
        return replace(due, files=files + more_files, rows=(rows + more_rows) // parts, parts=parts)

    def forget(self) -> None:
        """Forget what was due and which tables exist: after a failed piece, a table may have been deleted."""
        self._due, self._under_way, self._settled, self._created = [], None, None, False

    def do(self, due: Advised) -> tuple[int, int]:
        """Look at the next part of a day, and after the last write what was found.

        Returns:
            Rows that were written, and bytes of their files; 0 before the last part.

        Raises:
            MaintenanceError: A table is written all the time, so nothing could be committed.
        """
        if not self._created:
            DeltaLake(self._lake).create(ADVICE_TABLES)
            self._created = True
        under_way, self._under_way = self._under_way or self._begun(due), None
        found = next(under_way)
        if found is None:
            self._under_way = under_way
            return 0, 0
        ours = pc.field("cluster") == due.cluster
        size = self._put(_ADVICE, due.day, found.rows, ours)
        looked = {
            "cluster": due.cluster,
            "event_date": due.day,
            "definition": DEFINITION,
            "first_day": due.period[0],
            "period_days": len(due.period),
            "groups": found.groups,
            "advices": pc.sum(pc.invert(found.rows["ended"])).as_py() or 0,
            "source_rows": due.source_rows,
            "carried": due.carried,
        }
        schema = pa.schema([field.remove_metadata() for field in table_named(_DAYS).arrow_schema])
        # `advice_days` comes last: it says that the day is done.
        size += self._put(_DAYS, due.day, pa.Table.from_pylist([looked], schema), ours)
        self._due.pop(0)
        return found.rows.num_rows + 1, size

    def _begun(self, due: Advised) -> Iterator[AdviceOfDay | None]:
        sources = AdviceSources(
            **{name: self._rows_of(name, due.day, due.day) for name in _READ_LAST},
            **{name: self._rows_of(name, due.period[0], due.day) for name in _READ},
        )
        before = table_named(_ADVICE).arrow_schema.empty_table()
        if due.before is not None:
            rows = self._rows_of(_ADVICE, due.before, due.before)
            before = rows.to_table(filter=pc.field("cluster") == due.cluster)
        return advice_of_day(sources, before, due.cluster, due.day, len(due.period), due.parts)

    def _put(self, name: str, day: date, rows: pa.Table, stale: ds.Expression) -> int:
        table = self._opened(name)
        assert table is not None  # noqa: S101 - `do` has created it
        if not rows.num_rows and not any(file.day == day for file in table.files()):
            return 0
        return table.put(day, rows, stale)

    def _rows_of(self, name: str, first: date, last: date) -> ds.Dataset:
        table = self._opened(name)
        if table is None:
            return ds.dataset(table_named(name).arrow_schema.empty_table())
        return table.rows_of(first, last)

    def _weight(self, name: str, first: date, last: date) -> tuple[int, int]:
        table = self._opened(name)
        of = [] if table is None else [file for file in table.files() if first <= file.day <= last]
        return len(of), sum(file.rows for file in of)

    def _look(self, today: date) -> list[Advised]:
        first = today - timedelta(days=self._back)
        state = (self._files(_HISTORY), self._files(_ADVICE), self._files(_DAYS))
        if state == self._settled:
            return []
        begin, again = first - timedelta(days=PERIOD), timedelta(days=AGAIN_DAYS)
        history: dict[str, dict[date, int]] = defaultdict(dict)
        for cluster, day, rows in self._asked(_HISTORY, begin, "event_date, sum(source_rows)::BIGINT"):
            history[cluster][day] = rows
        looked: dict[str, dict[date, AdvisedDay]] = defaultdict(dict)
        columns = "event_date, max(source_rows), min(definition), max(carried)"
        for cluster, day, *there in self._asked(_DAYS, date.min, columns):
            looked[cluster][day] = AdvisedDay(*there)
        sums: dict[str, dict[date, int]] = defaultdict(dict)
        for (cluster, day), total in carried(self._rows_of(_ADVICE, begin - again, date.max)).items():
            sums[cluster][day] = total
        # Advice from before a long pause is still open, and the first day after it must end it.
        paused = {day for name in history if (day := day_before(looked[name], first)) and day < begin - again}
        for day in paused:
            for (cluster, _), total in carried(self._rows_of(_ADVICE, day, day)).items():
                sums[cluster][day] = total
        found = [
            Advised(cluster, day, tuple(period_of(of, day)), before, source_rows(of, day), _sum(sums[cluster], before))
            for cluster, of in sorted(history.items())
            # (One at a time: the next one begins with what this one leaves.)
            for day in days_due(of, looked[cluster], sums[cluster], first)[:1]
            for before in [day_before(looked[cluster], day)]
        ]
        self._settled = None if found else state
        return found

    def _asked(self, name: str, first: date, columns: str) -> list[tuple[Any, ...]]:
        sql = f"SELECT cluster, {columns} FROM asked GROUP BY cluster, event_date"  # noqa: S608
        with limited() as connection:
            connection.register("asked", self._rows_of(name, first, date.max))
            return connection.sql(sql).fetchall()

    def _files(self, name: str) -> frozenset[str]:
        table = self._opened(name)
        return frozenset() if table is None else frozenset(file.path for file in table.files())


def _sum(sums: Mapping[date, int], day: date | None) -> int:
    return 0 if day is None else sums.get(day, 0)
