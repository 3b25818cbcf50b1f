"""Whether the lake is maintained, by what harms its readers when it is not: the number of files in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.tables import ALL_TABLES

# Maintenance joins files every few minutes. Counting opens every table, up to a second for a neglected lake.
_EVERY_S = 600.0


@dataclass(frozen=True, slots=True)
class Largest:
    """The table with the most files.

    Attributes:
        table: Its name.
        files: How many it has.
    """

    table: str
    files: int


class Upkeep:
    """Counts the files of a lake's tables now and then."""

    def __init__(self, lake: str, steady: Callable[[], float]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            steady: Seconds that no change of a clock affects.
        """
        self._lake = lake.rstrip("/")
        self._steady = steady
        self._next = steady()
        self._largest: Largest | None = None

    @property
    def largest(self) -> Largest | None:
        """What `look` has found last; None before it has, and in a lake without tables."""
        return self._largest

    def look(self) -> None:
        """Count again, unless that was a few minutes ago. A table that cannot be read now is left out."""
        if self._steady() < self._next:
            return
        counted = [found for table in ALL_TABLES if (found := self._count(table.name)) is not None]
        self._largest = max(counted, key=lambda found: found.files, default=None)
        self._next = self._steady() + _EVERY_S

    def _count(self, table: str) -> Largest | None:
        try:
            opened = DeltaTable(f"{self._lake}/{table}")
        except (DeltaError, OSError):
            # Not there yet, or broken: `unjudged` reports that of a table that rules read.
            return None
        return Largest(table, pa.table(opened.get_add_actions()).num_rows)
