"""The lake of a rebuild: it passes on the rows that the tables do not have, and says how far it has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from streaming.groups import Incarnations
from streaming.job.rebuild.plan import Rebuild, new_rows
from streaming.lifecycle import room_log
from streaming.tables import TABLES, DeltaLake, KnownRows, computed, table_named, to_arrow

_LOG = room_log(__name__)

# Days before the newest one in which every living member has a row: one for the repetition, one for a clock.
_REPEATED_DAYS = 2


def incarnations_of(lake: str, cluster: str) -> Incarnations:
    """The incarnations of all groups, as `rebalance_churn` has them.

    Without them a group whose first decisions were compacted away would begin a new one, and its verdict would be taken
    for that of an earlier group of the same name.
    """
    churn = KnownRows(lake, table_named("rebalance_churn"), cluster)
    found = churn.rows(("group_id", "incarnation", "decision")).group_by(["group_id", "incarnation"])
    by_group: dict[str, list[tuple[int, int]]] = {}
    for row in found.aggregate([("decision", "max")]).to_pylist():
        by_group.setdefault(row["group_id"], []).append((row["incarnation"], row["decision_max"]))
    return Incarnations(by_group)


# A decision shows all members of its group, so a member whose newest row is older than the newest decision has left,
# if that decision's rows are complete. (A static member that comes back has a newer row than the decision.)
_GONE = """
    WITH newest AS (
        SELECT group_id, arg_max_null(members, decision) AS members, max(decision) AS decision,
               arg_max_null(record_time, decision) AS record_time, arg_max(event_date, decision) AS event_date
        FROM churn GROUP BY group_id
    ), shown AS (
        SELECT n.group_id, count(DISTINCT m.member_id) AS members FROM newest AS n LEFT JOIN members AS m
        ON m.group_id = n.group_id AND m.decision = n.decision AND NOT m.ended GROUP BY n.group_id
    ), last AS (
        SELECT * FROM members
        QUALIFY row_number() OVER (PARTITION BY group_id, member_id ORDER BY decision DESC, ended DESC) = 1
    )
    SELECT l.* REPLACE (
        n.decision AS decision, n.record_time AS record_time, n.event_date AS event_date, true AS ended,
        0 AS partition_count, coalesce(l.partitions, [])[1:0] AS partitions, NULL AS repeat
    )
    FROM last AS l JOIN newest AS n USING (group_id) JOIN shown AS s USING (group_id)
    WHERE NOT l.ended AND l.decision < n.decision AND s.members = n.members
"""


def gone_members(lake: str, cluster: str) -> pa.Table:
    """Closing rows of `members` for those of whom compaction has removed the record that shows that they have left."""
    table = table_named("members")
    members = KnownRows(lake, table, cluster)
    churn = KnownRows(lake, table_named("rebalance_churn"), cluster)
    # The living repeat their rows once a day, so those of older days are of no one who is there.
    days = [day for day in members.rows(("event_date",))["event_date"].unique().to_pylist() if day is not None]
    recent = ds.field("event_date") >= max(days) - timedelta(days=_REPEATED_DAYS) if days else None
    sources = {
        "members": members.rows([column.name for column in table.columns], recent),
        "churn": churn.rows(("group_id", "decision", "members", "record_time", "event_date")),
    }
    return computed(sources, _GONE).cast(table.arrow_schema)


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
        self._last: int | None = None
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
        self._new[table] += written
        if table == "rounds":
            newest = pc.max(columns["round"]).as_py()
            _LOG.info("rebuilding the state: read up to round %d of %d", newest, self._plan.until - 1)
            # Only a later batch shows that Spark has committed this one: if it runs again, it must be judged again.
            if newest >= self._plan.until:
                self._last = batch
        return written

    def _finish(self) -> None:
        self._last = None
        gone = gone_members(self.root, self._cluster)
        if gone.num_rows:
            self._lake.append("members", gone, f"rebuild-{self._cluster}-{self._plan.until}", 0)
        self._plan = msgspec.structs.replace(self._plan, done=True)
        self._keep(self._plan)
        written = ", ".join(f"{n} {table}" for table, n in self._new.items() if n) or "no rows"
        _LOG.info("the state is rebuilt; since this start of the job it wrote %s", written)
