"""A stretch of time of one table by SQL, without opening files that cannot hold any of it.

`LakeReader` opens every file of every table, and DuckDB asks each for its statistics: minutes, where a day of batches
was never compacted. The Delta log has the same statistics for all files at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.tables.dataset import DAY, data_set, file_system, refuse_features
from streaming.tables.lost import naming_what_is_lost
from streaming.tables.memory import fetched_dicts, in_memory
from streaming.tables.opened import CUT_AT
from streaming.tables.schema import Table

__all__ = ["Stretch", "StretchReader"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which rows a question is about. It may be given more; it must leave those out itself.

    Attributes:
        since: Rows of an earlier time are of no interest.
        until: Nor are later ones.
        cluster: Nor are those of another cluster.
        group: Nor are those of another group.
    """

    since: datetime
    until: datetime
    cluster: str
    group: str


class StretchReader:
    """One table. Not thread-safe."""

    def __init__(self, root: str, table: Table, time: str) -> None:
        """Prepare; nothing is read yet.

        Args:
            root: Folder or URI of the lake.
            table: The table.
            time: Its column of times.
        """
        self._uri = f"{root.rstrip('/')}/{table.name}"
        self._table = table
        self._time = time
        self._opened: DeltaTable | None = None

    def rows(self, sql: str, parameters: Mapping[str, Any], stretch: Stretch) -> list[dict[str, Any]]:
        """Run a query over the newest version; one dict per row, none where there is no table yet.

        Args:
            sql: It reads this table alone, under its name.
            parameters: By name.
            stretch: Which rows it is about.

        Raises:
            LakeUnreadableError: The table is there, and cannot be read.
        """
        try:
            if self._opened is None:
                self._opened = DeltaTable(self._uri)
            else:
                self._opened.update_incremental()
            refuse_features(self._opened, self._uri)
            files = self._files(stretch)
        except TableNotFoundError:
            return []
        rows = data_set(files, self._table.arrow_schema, file_system(self._uri))
        with in_memory() as connection, naming_what_is_lost(f"The table {self._uri}"):
            connection.register(self._table.name, rows)
            return fetched_dicts(connection, sql, dict(parameters))

    def files(self, stretch: Stretch) -> int:
        """How many files the last question would have opened for a stretch."""
        return len(self._files(stretch))

    def _files(self, stretch: Stretch) -> list[tuple[str, date | None]]:
        assert self._opened is not None  # noqa: S101 - `rows` has opened it
        actions = pa.table(self._opened.get_add_actions(flatten=True))
        day = f"partition.{DAY}"
        bounds = {
            day: (pc.field(day) >= stretch.since.date()) & (pc.field(day) <= stretch.until.date()),
            f"max.{self._time}": pc.field(f"max.{self._time}") >= stretch.since,
            f"min.{self._time}": pc.field(f"min.{self._time}") <= stretch.until,
            "min.cluster": pc.field("min.cluster") <= stretch.cluster,
            "max.cluster": _reaches(pc.field("max.cluster"), stretch.cluster),
            "min.group_id": pc.field("min.group_id") <= stretch.group,
            "max.group_id": _reaches(pc.field("max.group_id"), stretch.group),
        }
        # (Without statistics a file may hold anything.)
        for name, holds in bounds.items():
            if name in actions.column_names:
                actions = actions.filter(holds | pc.field(name).is_null())
        rows = actions.select([name for name in ("path", day) if name in actions.column_names]).to_pylist()
        return [(unquote(row["path"]), row.get(day)) for row in rows]


def _reaches(highest: pc.Expression, text: str) -> pc.Expression:
    """Whether the highest text of a file, which may have been cut, can be this one or a later one."""
    return (highest >= text) | (pc.binary_length(highest) >= CUT_AT)
