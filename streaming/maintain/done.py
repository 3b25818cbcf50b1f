"""What a piece of maintenance has done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Done:
    """One piece of work that was done.

    Attributes:
        table: Name of the table.
        what: compaction, sorting, retention, history, advice, vacuum or checkpoint.
        day: Its day; None for vacuum and checkpoint.
        hour: Its hour, where it is one of history.
        files: Files read or deleted.
        size: Their bytes.
        rows: Rows read; 0 for vacuum and checkpoint.
        rows_after: Rows that are left of them.
        size_after: Their bytes.
        seconds: How long it took.
    """

    table: str
    what: str
    day: date | None = None
    hour: datetime | None = None
    files: int = 0
    size: int = 0
    rows: int = 0
    rows_after: int = 0
    size_after: int = 0
    seconds: float = 0.0
