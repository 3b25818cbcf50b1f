"""One table's new rows for the alerter: those of rounds wait until their round is closed, all others come once.

Rows of rounds are ordered by the number of their round. Times are not used: a broker's clock can be wrong. For rows
that belong to no round (`gaps`, `quarantine`, `alert_deliveries`), the position in a table is a version of it, which is
committed with the decisions that follow from its rows (`decisions.py`): so a restart misses none and repeats none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streaming.alerts.exceptions import LostTrackError
from streaming.lifecycle import room_log
from streaming.tables import DataFile, DeltaLogTail, LakeUnreadableError, Table, table_named

_LOG = room_log(__name__)

_ANY_ROUND = 2**63 - 1

# Time columns of the tables; the tail requires them, but nothing here uses them.
_TIMES = {"gaps": "to_time", "quarantine": "record_time", "alert_deliveries": "attempt_time"}


class WaitingRows:
    """The rows of one table that wait for their round: at a start in the relevant files, then in new ones only."""

    def __init__(self, lake: str, table: Table, columns: tuple[str, ...], cluster: str) -> None:
        self._schema = pa.schema([table.arrow_schema.field(name) for name in columns])
        self._cluster = cluster
        self._log_tail = DeltaLogTail(lake, table, "round_time")
        self._is_there = False
        self._after = -1
        self.waiting = self._schema.empty_table()

    def snapshot(self) -> Sequence[DataFile]:
        """The present files, from which `read` continues; none if there is no table yet."""
        self.waiting = self._schema.empty_table()
        self._log_tail.forget()
        found = self._log_tail.look()
        self._is_there = found.is_snapshot
        return found.files

    def rows(self, files: Collection[DataFile], after: int | None, until: int | None) -> pa.Table:
        """Rows of the cluster in files, after a round and up to another (numbers, None for no bound)."""
        # (Delta need not know the bounds of a file: then it is read.)
        chosen = [
            file
            for file in files
            if file.rounds is None
            or ((after is None or file.rounds[1] > after) and (until is None or file.rounds[0] <= until))
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
                message = f"The table {self._log_tail.uri} is another table than before, or its commits were cleaned up"
                raise LostTrackError(message)
            self._is_there = self._is_there or new.is_snapshot
            if new.files:
                self.waiting = pa.concat_tables([self.waiting, self.rows(new.files, self._after, None)])
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


def newest_first(file: DataFile) -> int:
    """A key that sorts files, reversed, with the newest first, and before them those of unknown age."""
    return file.rounds[1] if file.rounds is not None else _ANY_ROUND


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
