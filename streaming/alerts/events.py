"""Rows that belong to no round (`gaps`, `quarantine`, `alert_deliveries`): each is returned once, when it is new.

The position in a table is a version of it, which is committed with the decisions that follow from its rows
(`decisions.py`): so a restart misses none of them and repeats none.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from streaming.lifecycle import room_log
from streaming.tables import DeltaLogTail, table_named

__all__ = ["EventFeed"]

_LOG = room_log(__name__)

# Time columns of the tables; the tail requires them, but nothing here uses them.
_TIMES = {"gaps": "to_time", "quarantine": "record_time", "alert_deliveries": "attempt_time"}


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
