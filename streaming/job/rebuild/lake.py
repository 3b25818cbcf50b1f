"""The lake of a rebuild: it passes on the rows that the tables do not have, and says how far it has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.job.rebuild.plan import Rebuild, new_rows
from streaming.job.rebuild.seeds import gone_members
from streaming.lifecycle import room_log
from streaming.tables import TABLES, DeltaLake, KnownRows, to_arrow

_LOG = room_log(__name__)


class RebuildingLake:
    """A lake for the batches of one query, until its rebuild is done and after.

    Attributes:
        root: Folder or URI.
    """

    def __init__(self, lake: DeltaLake, cluster: str, plan: Rebuild, keep: Callable[[Rebuild], None]) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: The lake with the tables.
            cluster: Name of the cluster.
            plan: The plan.
            keep: Stores the plan when it is done.
        """
        self.root = lake.root
        self._lake = lake
        self._cluster = cluster
        self._plan = plan
        self._keep = keep
        self._tables = {table.name: table for table in TABLES}
        self._known = {table.name: KnownRows(lake.root, table, cluster) for table in TABLES}
        self._has_caught_up = False
        self._last: int | None = None
        self._there: Counter[str] = Counter()
        self._new: Counter[str] = Counter()

    def append(self, table: str, rows: list[list[Any]] | pa.Table, writer: str, batch: int) -> int:
        """Append once what is new; see `Lake.append`."""
        if self._last is not None and batch > self._last:
            self._finish()
        if self._plan.done:
            return self._lake.append(table, rows, writer, batch)
        columns = rows if isinstance(rows, pa.Table) else to_arrow(self._tables[table], rows)
        new = new_rows(self._tables[table], columns, self._plan, self._known[table])
        written = self._lake.append(table, new, writer, batch) if new.num_rows else 0
        self._there[table] += columns.num_rows - new.num_rows
        self._new[table] += written
        if table == "rounds":
            self._tell(columns)
            # Only a later batch shows that Spark has committed this one: if it runs again, it must be judged again.
            if pc.max(columns["round"]).as_py() >= self._plan.until:
                self._last = batch
        return written

    def _tell(self, rounds: pa.Table) -> None:
        newest = rounds.sort_by("round").slice(rounds.num_rows - 1).to_pylist()[0]
        number, time = newest["round"], newest["round_time"]
        there, new = self._there.total(), self._new.total()
        _LOG.info(
            "rebuilding the state: read up to round %d (%s) of %d; %d rows were in the tables, %d were new",
            *(number, _shown(time), self._plan.until - 1, there, new),
        )
        if not self._has_caught_up and number >= self._plan.newest_round:
            self._has_caught_up = True
            _LOG.info("rebuilding the state: caught up with what the tables had, round %d", self._plan.newest_round)

    def _finish(self) -> None:
        self._last = None
        if self._plan.gap is not None:
            gone = gone_members(self.root, self._cluster)
            if gone.num_rows:
                self._lake.append("members", gone, f"rebuild-{self._cluster}-{self._plan.until}", 0)
        self._plan = msgspec.structs.replace(self._plan, done=True)
        self._keep(self._plan)
        written = ", ".join(f"{n} {table}" for table, n in self._new.items() if n) or "no rows"
        _LOG.info("the state is rebuilt; since this start of the job it wrote %s", written)


def _shown(time: datetime | None) -> str:
    return "no time" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
