"""Advice: what a person could change in a group, from what it did in the last days; each with its arithmetic.

Rules are pure functions of a group's period (`period.py`); SQL files fetch its rows (`rows.py`).
"""

from __future__ import annotations

from streaming.advice.rows import OF_LAST_DAY, OF_PERIOD, advice_of_day
from streaming.advice.run import BACK_DAYS, PERIOD, days_due, period_of, print_advice

__all__ = [
    "BACK_DAYS",
    "OF_LAST_DAY",
    "OF_PERIOD",
    "PERIOD",
    "advice_of_day",
    "days_due",
    "period_of",
    "print_advice",
]
