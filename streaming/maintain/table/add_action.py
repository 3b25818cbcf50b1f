"""What Delta's log says of a data file, as one flat row of `get_add_actions`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from streaming.maintain.table.plan import File
from streaming.tables import DAY, Table

OF_A_FILE: Final = (
    "path", "size_bytes", "modification_time", "num_records", f"partition.{DAY}", "min.round", "max.round",
)  # fmt: skip
"""What is asked for, by its names."""

# Bytes of a row of which the log says nothing, compressed: too few rather than too many.
_LEAST_ROW = 10


def concerns(action: Mapping[str, Any], first: date, last: date, rounds: tuple[int, int] | None) -> bool:
    """Whether a file can have rows of some days, and of some rounds.

    Args:
        action: What the log says of it.
        first: The first day; rows without a day are of none.
        last: The last one.
        rounds: The first and the last round; None for all.
    """
    day = action.get(f"partition.{DAY}")
    if isinstance(day, str):
        day = date.fromisoformat(day)
    if day is None or not first <= day <= last:
        return False
    least, most = action.get("min.round"), action.get("max.round")
    return rounds is None or least is None or most is None or (most >= rounds[0] and least <= rounds[1])


def file_of(table: Table, action: Mapping[str, Any]) -> File:
    """The file as the plan sees it."""
    written = action["modification_time"]
    if isinstance(written, datetime):
        written = int(written.timestamp() * 1000)
    day = action.get(f"partition.{DAY}")
    if isinstance(day, str):
        day = date.fromisoformat(day)
    size = action["size_bytes"]
    rows = action.get("num_records")
    return File(
        path=action["path"],
        day=day if day is not None else datetime.fromtimestamp(written / 1000, UTC).date(),
        size=size,
        rows=rows if rows is not None else size // _LEAST_ROW,
        written=written,
        undated=day is None and DAY in table.partition_by,
    )
