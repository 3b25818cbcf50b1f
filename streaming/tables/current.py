"""The `_current` views: the newest row of each key, without what has ended.

Plain SQL that Spark and DuckDB both run. A group that has ended takes its verdict with it, and
what other strategies would have done; decisions are history and stay, with their newest revision.
"""

from __future__ import annotations

from collections.abc import Collection

from streaming.tables.schema import ALL_TABLES, Table

__all__ = ["VIEWS", "current_sql"]

_WITH_LIVING_GROUP = frozenset({"drift", "what_if"})


def current_sql(table: Table, source: str | None = None, only: Collection[str] | None = None) -> str:
    """SELECT of the view `<table>_current` over tables and views of the plain names.

    Args:
        table: The table.
        source: Where its rows are, if not under its own name: any part of them that has the newest of each key.
        only: Columns, if not all.
    """
    key = ", ".join(table.key)
    newest = ", ".join(f"{column} DESC" for column in table.newest_by)
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {newest}) AS age FROM {source or table.name}"  # noqa: S608
    columns = ", ".join(f"t.{c.name}" for c in table.columns if only is None or c.name in only)
    living = " AND NOT t.ended" if table.closes else ""
    joined = ""
    if table.name in _WITH_LIVING_GROUP:
        joined = " JOIN group_health_current AS g ON g.cluster = t.cluster AND g.group_id = t.group_id"
    return f"SELECT {columns} FROM ({ranked}) AS t{joined} WHERE t.age = 1{living}"  # noqa: S608


def _ordered() -> list[Table]:
    return sorted(ALL_TABLES, key=lambda t: t.name in _WITH_LIVING_GROUP)


VIEWS = {f"{table.name}_current": current_sql(table) for table in _ordered()}
"""SQL by view name, in an order in which they can be created."""
