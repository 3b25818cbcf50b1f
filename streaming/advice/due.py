"""Which days are to be looked at for advice: those that have their history, in order, each once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final

PERIOD: Final = 7
"""Days that the rules look at: weekends and working days, and what a release of last month did counts no more."""

BACK_DAYS: Final = 14
"""Days back that are looked at: advice is about now."""


def days_due(history: Iterable[date], last: date | None, first: date) -> list[date]:
    """Days of one cluster to be looked at, the oldest first.

    Args:
        history: Its days in `group_daily`.
        last: The last day that was looked at; None for none.
        first: The first day that may be looked at.
    """
    return sorted(day for day in history if day >= first and (last is None or day > last))


def period_of(history: Iterable[date], day: date) -> list[date]:
    """Days of the period that ends with a day and have figures, the oldest first."""
    return sorted(one for one in history if day - timedelta(days=PERIOD) < one <= day)
