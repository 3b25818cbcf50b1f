"""What is due in a table, by its files and the day, and what a piece of work has done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError

from streaming.exceptions import EvenkeelError
from streaming.stores import cause_of
from streaming.tables import DataFile, advice
from streaming.times import DAY_MS

TARGET_BYTES: Final = 100 * 1024 * 1024
"""Size of the files that compaction makes: a day of a thousand groups is one, and a reader of it opens one."""

# Files below this are joined with others. Half of what they become: larger ones would be written again for little.
_SMALL_BYTES = TARGET_BYTES // 2


class MaintenanceError(EvenkeelError):
    """A piece of maintenance could not be done; the table is as it was."""


class NotMaintainedError(MaintenanceError):
    """Some tables could not be maintained, and all others are. Each failure was reported when it happened."""


@contextmanager
def one_sentence(uri: str) -> Iterator[None]:
    """Turn what delta-rs, Arrow and DuckDB raise into one sentence."""
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException, duckdb.Error) as error:
        otherwise = "check that its folder is whole and writable and its disk not full, and try again"
        message = f"The table {uri} could not be maintained ({cause_of(error)}): {advice(error, otherwise)}."
        raise MaintenanceError(message) from error


@dataclass(frozen=True, slots=True)
class Done:
    """One piece of work that was done: at most one commit.

    Attributes:
        table: Name of the table.
        what: compaction, retention, history, advice or upkeep (vacuum, checkpoint, cleaning of the log).
        day: Its day; with retention the first one that is kept; None for upkeep.
        hour: Its hour, where it is one of history.
        files: Files read or deleted.
        rows: Rows written or deleted.
        size: Bytes of files deleted by vacuum.
        seconds: How long it took.
    """

    table: str
    what: str
    day: date | None = None
    hour: datetime | None = None
    files: int = 0
    rows: int = 0
    size: int = 0
    seconds: float = 0.0


def today_of(now: int, newest: date | None) -> date:
    """The day from which rows are aged, UTC: the newest in the lake, or the clock's if that is earlier.

    So neither a machine whose clock is ahead nor a broker whose clock is deletes history, and a lake to which nobody
    writes any more stays as it is.

    Args:
        now: The clock, ms since the epoch.
        newest: Newest day of a round in the lake; None when there is none.
    """
    clock = date(1970, 1, 1) + timedelta(days=now // DAY_MS)
    if newest is None:
        return clock
    return min(clock, newest)


def days_to_join(files: Iterable[DataFile]) -> dict[date | None, list[DataFile]]:
    """Small files by day, the newest day first, of days that have several; None is the day of rows without one."""
    small: dict[date | None, list[DataFile]] = {}
    for file in files:
        if file.size < _SMALL_BYTES:
            small.setdefault(file.day, []).append(file)
    newest_first = sorted(small, key=lambda day: day or date.min, reverse=True)
    return {day: small[day] for day in newest_first if len(small[day]) > 1}


def expired(files: Iterable[DataFile], first_kept: date) -> list[DataFile]:
    """Files of days before the first one that is kept."""
    return [file for file in files if file.day is not None and file.day < first_kept]
