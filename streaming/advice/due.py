"""Which days are to be looked at for advice: a pure function of sums, as for history (`streaming.history.due`).

Advice of a day needs the history of the days before it, and says since when it holds, which the advice of the day
before tells. Both are summed up beside what was written, so a day whose ground has changed is due again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import pyarrow.dataset as ds

from streaming.tables import limited

DEFINITION: Final = 3
"""Version of the rules: days that an older one has looked at are looked at again, as far as they may be."""

PERIOD: Final = 7
"""Days that the rules look at: weekends and working days, and what a release of last month did counts no more."""

AGAIN_DAYS: Final = 14
"""Days back that are looked at: advice is about now, and rows that are later than this change none."""


@dataclass(frozen=True, slots=True)
class AdvisedDay:
    """What `advice_days` has of a day.

    Attributes:
        source_rows: Rows of the history that it was computed from.
        definition: By which version.
        carried: As `carried` gave for the day before.
    """

    source_rows: int
    definition: int
    carried: int


def days_due(
    history: Mapping[date, int], looked: Mapping[date, AdvisedDay], sums: Mapping[date, int], first: date
) -> list[date]:
    """Days of one cluster to be looked at, the oldest first.

    Args:
        history: `source_rows` of its days in `group_daily`.
        looked: Days that were looked at.
        sums: As `carried` gives, by day.
        first: The first day that may be looked at.
    """
    due = []
    for day in sorted(history):
        if day < first:
            continue
        before = day_before(looked, day)
        there = looked.get(day)
        expected = AdvisedDay(source_rows(history, day), DEFINITION, 0 if before is None else sums.get(before, 0))
        if there is None or (there.definition <= DEFINITION and there != expected):
            due.append(day)
    return due


def day_before(looked: Iterable[date], day: date) -> date | None:
    """The newest day before another that was looked at; None for the first."""
    return max((one for one in looked if one < day), default=None)


def period_of(history: Iterable[date], day: date) -> list[date]:
    """Days of the period that ends with a day and have figures, the oldest first."""
    return sorted(one for one in history if day - timedelta(days=PERIOD) < one <= day)


def source_rows(history: Mapping[date, int], day: date) -> int:
    """Rows of the history of a period."""
    return sum(history[one] for one in period_of(history, day))


def carried(advice: ds.Dataset) -> dict[tuple[str, date], int]:
    """By cluster and day a sum over what the next day takes over of its advice: which holds, and since when."""
    sql = (
        "SELECT cluster, event_date, sum(hash(group_id, kind, since) % 1000000007)::BIGINT FROM advice "
        "WHERE NOT ended GROUP BY ALL"
    )
    with limited() as connection:
        connection.register("advice", advice)
        return {(cluster, day): total for cluster, day, total in connection.sql(sql).fetchall()}
