"""The tables' contents as text: rows per table, verdict and churn of each group, lag per group."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from streaming.tables import TABLES, LakeReader
from streaming.up.cells import cell

__all__ = ["print_summary"]

_GROUPS = """
WITH churn AS (
  SELECT cluster, group_id, count(*) FILTER (WHERE kind = 'rebalance') AS rebalances,
         count(*) FILTER (WHERE kind = 'static_replacement') AS replaced, sum(partitions_moved) AS partitions_moved
  FROM rebalance_churn_current GROUP BY ALL
), verdicts AS (
  SELECT cluster, group_id, string_agg(verdict || ' ' || n, ', ' ORDER BY verdict) AS verdicts
  FROM (SELECT cluster, group_id, verdict, count(*) AS n FROM drift GROUP BY ALL) GROUP BY ALL
)
SELECT h.group_id, h.state, h.ended, h.verdict, verdicts, rebalances, replaced, partitions_moved, h.lag_total,
       h.lag_status
FROM (
  SELECT *, row_number() OVER (PARTITION BY cluster, group_id ORDER BY round DESC) AS age
  FROM group_health
) AS h
LEFT JOIN churn USING (cluster, group_id) LEFT JOIN verdicts USING (cluster, group_id)
WHERE age = 1 ORDER BY h.group_id
"""


def print_summary(console: Console, reader: LakeReader) -> None:
    """Print it."""
    tables = Table("table", "rows", box=None, header_style="bold")
    tables.columns[1].justify = "right"
    for table in TABLES:
        tables.add_row(table.name, f"{reader.count(table.name):,}")
    console.print(tables)
    groups = Table("group", "state", "verdict", "verdicts so far", box=None, header_style="bold")
    for name in ("rebalances", "replaced", "partitions_moved", "lag"):
        groups.add_column(name, justify="right")
    groups.add_column("lag status")
    for row in reader.rows(_GROUPS):
        groups.add_row(
            cell(row["group_id"]),
            cell(row["state"]),
            cell(row["verdict"]),
            cell(row["verdicts"] or ""),
            cell(row["rebalances"] or 0),
            cell(row["replaced"] or 0),
            cell(row["partitions_moved"]),
            cell(row["lag_total"], ","),
            cell(row["lag_status"]),
        )
    console.print(groups)
