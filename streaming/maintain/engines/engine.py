"""Another engine that compacts and vacuums, such as a Spark cluster."""

from __future__ import annotations

from datetime import date
from typing import Protocol

from streaming.maintain.done import Done
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.delta_table import MaintainedTable
from streaming.tables import Table


class Engine(Protocol):
    """Compacts days and vacuums in place of ours (`spark_engine.py`). Errors are `MaintenanceError`s."""

    def compact(self, table: Table, uri: str, day: date) -> None:
        """Join all small files of one day."""

    def vacuum(self, uri: str) -> None:
        """Delete the files that nobody may read any more."""


def by_engine(engine: Engine, opened: MaintainedTable, day: date) -> Done:
    """Let an engine compact a day.

    Raises:
        MaintenanceError: It could not, or has joined nothing.
    """
    before = [file for file in opened.files() if file.day == day]
    engine.compact(opened.table, opened.uri, day)
    opened.look_again()
    after = [file for file in opened.files() if file.day == day]
    if len(after) >= len(before):
        message = (
            f"The engine has joined none of {len(before)} files of {day} in the table {opened.uri}: maintain it "
            "without --engine."
        )
        raise MaintenanceError(message)
    return Done(
        table=opened.table.name,
        what="compaction",
        day=day,
        files=len(before),
        size=sum(file.size for file in before),
        rows=sum(file.rows for file in before),
        rows_after=sum(file.rows for file in after),
        size_after=sum(file.size for file in after),
    )
