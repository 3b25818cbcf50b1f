"""Fills the tables of advice: finds the days that are due, reads what the rules need, commits the rows.

A day is looked at once, when it has its history; the lake is read only when history has changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.advice import BACK_DAYS, OF_LAST_DAY, OF_PERIOD, PERIOD, advice_of_day, days_due, period_of
from streaming.maintain.engines import Done
from streaming.maintain.rollups import of_cluster, put
from streaming.tables import ADVICE_TABLES, HISTORY_TABLES, DeltaLake, OpenedTable, computed, table_named

_ADVICE, _DAYS = (table.name for table in ADVICE_TABLES)
_HISTORY = HISTORY_TABLES[-1].name

# Rows of files for which the groups are worked on in one part: it takes 3 to 4 s and half a gigabyte.
# With more parts the files are read more often.
_PART_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Advised:
    """A day of one cluster that is to be looked at for advice.

    Attributes:
        cluster: The cluster.
        day: The day.
        period: Days of the period that have figures, the oldest first.
        before: The day that was looked at before it; None for the first.
    """

    cluster: str
    day: date
    period: tuple[date, ...]
    before: date | None


class Advising:
    """The advice of one lake. Not thread-safe."""

    def __init__(self, lake: str, opened: Callable[[str], OpenedTable], keep_days: Mapping[str, int | None]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            opened: Opens a table by name.
            keep_days: Days that each table keeps.
        """
        self._lake = lake
        self._opened = opened
        # A period must be whole: a day whose period has lost rows to retention is no longer looked at.
        kept = (keep_days[name] for name in (*OF_PERIOD, "group_health"))
        self._back = min(BACK_DAYS, *(days - PERIOD for days in kept if days is not None))
        self._settled: tuple[int | None, ...] | None = None

    def work(self, today: Callable[[], date]) -> Iterator[Done]:
        """Look at each day that is due, until none is.

        Args:
            today: Gives the newest day of the lake (`today_of`).
        """
        while due := self._find_due(today()):
            DeltaLake(self._lake).create(ADVICE_TABLES)
            for advised in due:
                yield Done(_ADVICE, "advice", advised.day, rows=self._advise(advised))

    def _advise(self, due: Advised) -> int:
        """Look at a day, and write what was found; returns the number of rows."""
        weights = [self._weight(name, due.period[0], due.day) for name in OF_PERIOD]
        parts = max(1, -(-(sum(weights) + self._weight("group_health", due.day, due.day)) // _PART_ROWS))
        sources = {name: self._rows_of(name, due.day, due.day) for name in OF_LAST_DAY}
        sources |= {name: self._rows_of(name, due.period[0], due.day) for name in OF_PERIOD}
        before = table_named(_ADVICE).arrow_schema.empty_table()
        if due.before is not None:
            rows = self._rows_of(_ADVICE, due.before, due.before)
            before = rows.to_table(filter=pc.field("cluster") == due.cluster)
        found, groups = advice_of_day(sources, before, due.cluster, due.day, len(due.period), parts)
        put(self._opened(_ADVICE), due.day, found, of_cluster(due.cluster))
        looked = {
            "cluster": due.cluster,
            "event_date": due.day,
            "first_day": due.period[0],
            "period_days": len(due.period),
            "groups": groups,
            "advices": pc.sum(pc.invert(found["ended"])).as_py() or 0,
        }
        schema = pa.schema([field.remove_metadata() for field in table_named(_DAYS).arrow_schema])
        # `advice_days` comes last: it says that the day is done.
        put(self._opened(_DAYS), due.day, pa.Table.from_pylist([looked], schema), of_cluster(due.cluster))
        return int(found.num_rows) + 1

    def _rows_of(self, name: str, first: date, last: date) -> ds.Dataset:
        opened = self._opened(name)
        return opened.rows(opened.files((first, last)), encoded=True)

    def _weight(self, name: str, first: date, last: date) -> int:
        return sum(file.rows or 0 for file in self._opened(name).files((first, last)))

    def _find_due(self, today: date) -> list[Advised]:
        first = today - timedelta(days=self._back)
        tables = [self._opened(name) for name in (_HISTORY, _DAYS)]
        state = tuple(table.delta.version() if table.is_there else None for table in tables)
        if state == self._settled:
            return []
        begin = first - timedelta(days=PERIOD)
        history: dict[str, list[date]] = defaultdict(list)
        for row in self._asked(_HISTORY, begin, "DISTINCT cluster, event_date AS day FROM asked"):
            history[row["cluster"]].append(row["day"])
        newest = self._asked(_DAYS, date.min, "cluster, max(event_date) AS day FROM asked GROUP BY cluster")
        last = {row["cluster"]: row["day"] for row in newest}
        found = [
            Advised(cluster, day, tuple(period_of(days, day)), last.get(cluster))
            for cluster, days in sorted(history.items())
            # One at a time: the next one begins with what this one leaves.
            for day in days_due(days, last.get(cluster), first)[:1]
        ]
        self._settled = None if found else state
        return found

    def _asked(self, name: str, first: date, columns: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = computed(
            {"asked": self._rows_of(name, first, date.max)}, f"SELECT {columns}"
        ).to_pylist()
        return rows
