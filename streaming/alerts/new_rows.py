"""One table's new rows for the alerter: those of rounds wait until their round is closed, all others come once.

Rows of rounds are ordered by the number of their round. Times are not used: a broker's clock can be wrong. For rows
that belong to no round (`gaps`, `quarantine`, `alert_deliveries`), the position in a table is a version of it, which is
committed with the decisions that follow from its rows (`decisions.py`): so a restart misses none and repeats none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.alerts.exceptions import LostTrackError
from streaming.lifecycle import room_log
from streaming.tables import DataFile, DeltaLogTail, LakeUnreadableError, Table, table_named

_LOG = room_log(__name__)

_FILE_COLUMNS = ("path", "partition.event_date", "min.cluster", "max.cluster", "min.round", "max.round")

_ANY_ROUND = 2**63 - 1

# Time columns of the tables; the tail requires them, but nothing here uses them.
_TIMES = {"gaps": "to_time", "quarantine": "record_time", "alert_deliveries": "attempt_time"}


@dataclass(frozen=True, slots=True)
class File:
    """A file with the first and last round of its rows; None where Delta does not know them."""

    data: DataFile
    oldest: int | None
    newest: int | None


class WaitingRows:
    """The rows of one table that wait for their round: at a start in the relevant files, then in new ones only."""

    def __init__(self, lake: str, table: Table, columns: tuple[str, ...], cluster: str) -> None:
        self._location = f"{lake}/{table.name}"
        self._schema = pa.schema([table.arrow_schema.field(name) for name in columns])
        self._cluster = cluster
        self._log_tail = DeltaLogTail(lake, table, "round_time")
        self._is_there = False
        self._after = -1
        self.waiting = self._schema.empty_table()

    def snapshot(self) -> list[File]:
        """The present files, from which `read` continues; none if there is no table yet."""
        self.waiting = self._schema.empty_table()
        self._log_tail.forget()
        self._is_there = self._log_tail.look().is_snapshot
        if not self._is_there:
            return []
        # (Opened after the tail, so it may contain a file more, which then comes again: `keep` handles that.)
        actions = pa.table(DeltaTable(self._location).get_add_actions(flatten=True))
        wanted = [name for name in _FILE_COLUMNS if name in actions.column_names]
        return [_file_of(action) for action in actions.select(wanted).to_pylist()]

    def rows(self, files: Collection[File], after: int | None, until: int | None) -> pa.Table:
        """Rows of the cluster in files, after a round and up to another (numbers, None for no bound)."""
        # (Delta need not know the bounds of a file: then it is read.)
        chosen = [
            file.data
            for file in files
            if (after is None or file.newest is None or file.newest > after)
            and (until is None or file.oldest is None or file.oldest <= until)
        ]
        if not chosen:
            return self._schema.empty_table()
        rows = self._log_tail.read(chosen, self._schema.names)
        wanted = pc.equal(rows["cluster"], self._cluster)
        if after is not None:
            wanted = pc.and_(wanted, pc.greater(rows["round"], after))
        if until is not None:
            wanted = pc.and_(wanted, pc.less_equal(rows["round"], until))
        return rows.filter(wanted).cast(self._schema)

    def keep(self, rows: pa.Table, after: int) -> None:
        """Let these rows wait, and of later ones only those newer than a round: the others were read."""
        self.waiting, self._after = rows, after

    def read(self) -> None:
        """Add the rows of new files to `waiting`."""
        try:
            new = self._log_tail.look()
            if new.is_snapshot and self._is_there:
                message = f"{self._location} is another table than before, or its commits were cleaned up"
                raise LostTrackError(message)
            self._is_there = self._is_there or new.is_snapshot
            if new.files:
                files = [File(file, None, None) for file in new.files]
                self.waiting = pa.concat_tables([self.waiting, self.rows(files, self._after, None)])
        except LakeUnreadableError as error:
            raise LostTrackError(str(error)) from error

    def take(self, until: int) -> pa.Table:
        """Remove and return the waiting rows of rounds up to one."""
        if self.waiting.num_rows == 0:
            return self.waiting
        now = pc.less_equal(self.waiting["round"], until)
        taken = self.waiting.filter(now)
        self.waiting = self.waiting.filter(pc.invert(now))
        return taken


def _file_of(action: dict[str, Any]) -> File:
    clusters = (action.get("min.cluster"), action.get("max.cluster"))
    known = None if None in clusters else (str(clusters[0]), str(clusters[1]))
    data = DataFile(unquote(action["path"]), action.get("partition.event_date"), known, None, 0)
    return File(data, action.get("min.round"), action.get("max.round"))


def newest_first(file: File) -> int:
    """A key that sorts files, reversed, with the newest first, and before them those of unknown age."""
    return file.newest if file.newest is not None else _ANY_ROUND


class EventFeed:
    """New rows of one cluster. Call `begin` first, then `look` again and again."""

    def __init__(self, lake: str, cluster: str, columns: Mapping[str, frozenset[str]]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            cluster: Whose rows.
            columns: Columns by table that the rules read.
        """
        self._cluster = cluster
        self._columns = columns
        self._log_tails = {name: DeltaLogTail(lake.rstrip("/"), table_named(name), _TIMES[name]) for name in columns}
        self._written_after = 0

    @property
    def versions(self) -> dict[str, int]:
        """The version up to which each table was read; without tables that do not exist yet."""
        return {name: f.version for name, f in self._log_tails.items() if f.version >= 0}

    def begin(self, versions: Mapping[str, int], written_after: int) -> None:
        """Continue after these versions.

        Args:
            versions: By table; one that is missing was never read.
            written_after: For a table that was never read, or whose commits since then were cleaned up, only files
                written after this time (ms, by the clock of the writers) count as new.
        """
        self._written_after = written_after
        for name, log_tail in self._log_tails.items():
            log_tail.forget()
            if name in versions and not log_tail.go_on_after(versions[name]):
                _LOG.warning("commits to the table %s since the last decision are gone", name)

    def look(self) -> dict[str, pa.Table]:
        """New rows by table, without tables that have none.

        Raises:
            LakeUnreadableError: A table exists but cannot be read: begin again.
        """
        found = {}
        for name, log_tail in self._log_tails.items():
            new = log_tail.look()
            files = [f for f in new.files if not new.is_snapshot or f.written > self._written_after]
            if not files:
                continue
            table = table_named(name)
            wanted = {"cluster", *table.key, *table.newest_by, *self._columns[name]}
            rows = log_tail.read(files, wanted)
            rows = rows.filter(pc.equal(rows["cluster"], self._cluster))
            if rows.num_rows:
                found[name] = rows
        return found
