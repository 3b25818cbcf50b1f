"""What a lake holds of a cluster already: the newest number in a table, and the rows that share columns with others.

Only files that can hold the answer are opened, by their statistics: a table may have billions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from streaming.tables.dataset import DAY, all_rows
from streaming.tables.memory import limited
from streaming.tables.schema import Table

# Groups by which row groups of a file are skipped: with more of them nearly every row group has one.
_NAMED_GROUPS = 10_000


class KnownRows:
    """Rows of one cluster in one table, as of the newest version; no rows where there is no table."""

    def __init__(self, root: str, table: Table, cluster: str) -> None:
        """Prepare; nothing is read yet.

        Args:
            root: Folder or URI of the lake.
            table: The table.
            cluster: Name of the cluster.
        """
        self.table = table
        self._uri = f"{root.rstrip('/')}/{table.name}"
        self._cluster = cluster
        self._opened: DeltaTable | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is such a table, with rows or without."""
        return bool(DeltaTable.is_deltatable(self._uri))

    def written_by(self, writer: str) -> int:
        """The newest batch of a writer (`Lake.append`) in the table; -1 where it has written none."""
        opened = self._refreshed()
        batch = None if opened is None else opened.transaction_version(f"{writer}/{self.table.name}")
        return -1 if batch is None else batch

    def any(self) -> bool:
        """Whether there is a row."""
        rows = self._data_set()
        if rows is None:
            return False
        found: pa.Table = rows.head(1, columns=["cluster"], filter=ds.field("cluster") == self._cluster)
        return bool(found.num_rows)

    def newest(self, column: str, below: int | None = None) -> int | None:
        """The highest number in a column, below a bound where one is given; None where there is no row.

        Files of this cluster alone are not opened, unless the bound lies inside them.
        """
        opened = self._refreshed()
        if opened is None:
            return None
        actions = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
        files = [action for action in actions if self._can_hold(action)]
        high = {file["path"]: file.get(f"max.{column}") for file in files}
        best: int | None = None
        # The highest files first, and before them those of which the log tells no bound.
        for file in sorted(files, key=lambda f: (h := high[f["path"]]) is None or h, reverse=True):
            path, most = file["path"], high[file["path"]]
            least = file.get(f"min.{column}")
            is_above = below is not None and least is not None and least >= below
            if is_above or (best is not None and most is not None and most <= best):
                continue
            if most is not None and (below is None or most < below) and self._is_alone(file):
                best = most
                continue
            rows = self.rows([column], wanted=lambda f, path=path: f["path"] == path)[column]  # type: ignore[misc]
            if below is not None:
                rows = rows.filter(pc.less(rows, below))
            found = pc.max(rows).as_py()
            best = found if best is None or (found is not None and found > best) else best
        return best

    def rows(
        self,
        columns: Collection[str],
        only: ds.Expression | None = None,
        wanted: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> pa.Table:
        """Columns of the rows.

        Args:
            columns: Which.
            only: Which rows; None for all.
            wanted: Which files, by their flat add action; None for all.
        """
        rows = self._data_set(wanted)
        if rows is None:
            return pa.schema([self.table.arrow_schema.field(name) for name in columns]).empty_table()
        ours = ds.field("cluster") == self._cluster
        return rows.to_table(columns=list(columns), filter=ours if only is None else ours & only)

    def without_known(self, rows: pa.Table) -> pa.Table:
        """The rows that the table does not have, by `Table.identity`, in their order."""
        if not rows.num_rows:
            return rows
        names = self.table.identity
        there = self.rows(names, self._only_like(rows), self._files_like(rows))
        if not there.num_rows:
            return rows
        same = " AND ".join(f'n."{name}" IS NOT DISTINCT FROM k."{name}"' for name in names)
        with limited() as connection:
            numbered = rows.select(names).append_column("at", pa.array(range(rows.num_rows), pa.int64()))
            connection.register("new", numbered)
            connection.register("known", there)
            sql = f"SELECT n.at FROM new AS n WHERE NOT EXISTS (SELECT 1 FROM known AS k WHERE {same}) ORDER BY n.at"  # noqa: S608
            at: pa.Table = connection.sql(sql).to_arrow_table()
        return rows.take(at["at"])

    def _only_like(self, rows: pa.Table) -> ds.Expression | None:
        """A filter that leaves the groups and rounds of these rows, by which row groups are skipped."""
        filters = []
        if "group_id" in rows.column_names:
            groups = pc.unique(rows["group_id"])
            if len(groups) <= _NAMED_GROUPS:
                filters.append(pc.field("group_id").isin(groups))
        if "round" in self.table.identity:
            bounds = pc.min_max(rows["round"])
            filters.append((pc.field("round") >= bounds["min"]) & (pc.field("round") <= bounds["max"]))
        return reduce(and_, filters) if filters else None

    def _files_like(self, rows: pa.Table) -> Callable[[Mapping[str, Any]], bool] | None:
        """Files of the rows' days: the same row is always of the same day."""
        if DAY not in self.table.partition_by:
            return None
        days = {str(day) for day in pc.unique(rows[DAY]).to_pylist()}
        return lambda file: str(file.get(f"partition.{DAY}")) in days

    def _data_set(self, wanted: Callable[[Mapping[str, Any]], bool] | None = None) -> ds.FileSystemDataset | None:
        opened = self._refreshed()
        if opened is None:
            return None
        return all_rows(self.table, opened, self._uri, lambda f: self._can_hold(f) and (wanted is None or wanted(f)))

    def _refreshed(self) -> DeltaTable | None:
        if self._opened is not None:
            self._opened.update_incremental()
            return self._opened
        try:
            self._opened = DeltaTable(self._uri)
        except TableNotFoundError:
            return None
        return self._opened

    def _can_hold(self, file: Mapping[str, Any]) -> bool:
        low, high = file.get("min.cluster"), file.get("max.cluster")
        return bool(low is None or high is None or low <= self._cluster <= high)

    def _is_alone(self, file: Mapping[str, Any]) -> bool:
        return bool(file.get("min.cluster") == file.get("max.cluster") == self._cluster)
