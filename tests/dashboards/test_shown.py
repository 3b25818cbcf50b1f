"""What is computed is shown: each column is in a query, or docs/page.md says why not."""

from __future__ import annotations

import re
from pathlib import Path

import dashboards
from dashboards.query import columns_read, history_queries, queries, server_queries
from streaming.tables import ALL_TABLES

_PAGE = (Path(dashboards.__file__).parents[1] / "docs" / "page.md").read_text(encoding="utf-8")


def _not_shown() -> dict[str, set[str]]:
    read = columns_read([*queries().values(), *history_queries().values(), *server_queries().values()])
    return {
        table.name: {column.name for column in table.columns}
        - read.get(table.name, frozenset())
        - read.get(f"{table.name}_current", frozenset())
        for table in ALL_TABLES
    }


def test_each_column_is_in_a_query_or_the_docs_say_why_not() -> None:
    rows = re.search(r"\| not shown \| because \|\n\|---\|---\|\n((?:\|.*\n)+)", _PAGE)
    names = {table.name for table in ALL_TABLES}
    excused = {name for row in rows[1].splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])} - names
    missing = _not_shown()
    assert {table: columns - excused for table, columns in missing.items() if columns - excused} == {}
    assert excused <= set().union(*missing.values()), "an excuse that nothing needs any more"
