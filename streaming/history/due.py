"""Which hours and days of history are to be computed: a pure function of counts.

Rows are only appended, and deleted by whole days, so a span that has more source rows than when it was computed got
late ones, and one that nobody has computed has none. Nothing else is kept of what was done: a lost table fills itself
again from what the lake still has, and a crash between two commits leaves a span that is due.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

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
