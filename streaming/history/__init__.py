"""History by hour and day: which spans are due, and the rows of one; SQL files hold the definitions."""

from __future__ import annotations

from streaming.history.due import (
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

__all__ = [
    "DEFINITION",
    "HistorySpan",
    "WrittenSpan",
    "due_days",
    "due_hours",
    "group_days",
    "group_hours",
    "partition_hours",
    "rounds_around",
]
