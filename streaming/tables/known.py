"""What a lake holds of a cluster already: the newest number in a table, and the rows that share columns with others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from streaming.tables.data_file import DAY
from streaming.tables.lake import application
from streaming.tables.memory import computed
from streaming.tables.opened import DataFile, OpenedTable
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
        self._opened = OpenedTable(root, table)
        self._cluster = cluster
        self._ours = pc.field("cluster") == cluster

    @property
    def is_there(self) -> bool:
        """Whether there is such a table, with rows or without."""
        return self._opened.refresh()

    def written_by(self, writer: str) -> int:
        """The newest batch of a writer (`Lake.append`) in the table; -1 where it has written none."""
        self._opened.refresh()
        batch = self._opened.transaction(application(self.table.name, writer))
        if batch is None:
            return -1
        return batch

    def any(self) -> bool:
        """Whether there is a row."""
        found: pa.Table = self._opened.rows(self._files()).head(1, columns=["cluster"], filter=self._ours)
        return bool(found.num_rows)

    def newest_round(self, below: int | None = None) -> int | None:
        """The highest round, below a bound where one is given; None where there is no row."""
        sql = (
            f"SELECT max(round) AS newest FROM {self.table.name} WHERE cluster = $cluster"  # noqa: S608
            " AND ($below::BIGINT IS NULL OR round < $below)"
        )
        [found] = self._opened.ask(sql, {"cluster": self._cluster, "below": below}, self._files())
        newest: int | None = found["newest"]
        return newest

    def rows(
        self, columns: Collection[str], only: pc.Expression | None = None, files: Iterable[DataFile] | None = None
    ) -> pa.Table:
        """Columns of the rows.

        Args:
            columns: Which.
            only: Which rows; None for all.
            files: Of some files; None for all.
        """
        rows = self._opened.rows(self._files() if files is None else files)
        return rows.to_table(columns=list(columns), filter=self._ours if only is None else self._ours & only)

    def without_known(self, rows: pa.Table) -> pa.Table:
        """The rows that the table does not have, by `Table.identity`, in their order."""
        if not rows.num_rows:
            return rows
        names = self.table.identity
        files = self._files()
        if DAY in self.table.partition_by:
            # The same row is always of the same day.
            days = set(pc.unique(rows[DAY]).to_pylist())
            files = [file for file in files if file.day in days]
        there = self.rows(names, self._only_like(rows), files)
        if not there.num_rows:
            return rows
        same = " AND ".join(f'n."{name}" IS NOT DISTINCT FROM k."{name}"' for name in names)
        numbered = rows.select(names).append_column("at", pa.array(range(rows.num_rows), pa.int64()))
        sql = f"SELECT n.at FROM new AS n WHERE NOT EXISTS (SELECT 1 FROM known AS k WHERE {same}) ORDER BY n.at"  # noqa: S608
        return rows.take(computed({"new": numbered, "known": there}, sql)["at"])

    def _only_like(self, rows: pa.Table) -> pc.Expression | None:
        """A filter that leaves the groups and rounds of these rows, by which row groups are skipped."""
        filters = []
        if "group_id" in rows.column_names:
            groups = pc.unique(rows["group_id"])
            if len(groups) <= _NAMED_GROUPS:
                filters.append(pc.field("group_id").isin(groups))
        if "round" in self.table.identity:
            bounds = pc.min_max(rows["round"])
            filters.append((pc.field("round") >= bounds["min"]) & (pc.field("round") <= bounds["max"]))
        if filters:
            return reduce(and_, filters)
        return None

    def _files(self) -> list[DataFile]:
        self._opened.refresh()
        return self._opened.files(cluster=self._cluster)
