"""The panels' queries: SQL files that run in DuckDB and in Spark.

A file begins with a comment: the question that it answers, its parameters (`:name  TYPE  meaning`), its columns. The
tables and columns that it reads are found by the parser, so a new panel is one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from streaming.explain import VERDICT
from streaming.tables import ALL_TABLES, reads, with_parameters

FOLDER = Path(__file__).parent / "queries"


@dataclass(frozen=True, slots=True)
class Query:
    """One query file.

    Attributes:
        name: File name without ".sql".
        sql: The text as in the file, the form that Spark's `sql(text, args=...)` takes.
        duckdb: The query for DuckDB, where a parameter is `$name`; values never become text.
        parameters: Their names.
        tables: Tables and `_current` views that it reads.
        columns: Names of the columns that it reads.
    """

    name: str
    sql: str
    duckdb: str
    parameters: frozenset[str]
    tables: frozenset[str]
    columns: frozenset[str]


@cache
def queries() -> dict[str, Query]:
    """The page's queries by name."""
    return _read(FOLDER)


@cache
def history_queries() -> dict[str, Query]:
    """Queries over months and years, by name: they read tables of history, which nobody holds in memory.

    A query of `group_hourly`, `*_hours`, is one of `group_daily`, too: `*_days` has a day where it has an hour.
    """
    return _read(FOLDER / "history", explained=VERDICT)


@cache
def server_queries() -> dict[str, Query]:
    """What the server of metrics and API reads beside the page's queries, by name."""
    return _read(FOLDER / "server")


def _read(folder: Path, **more: str) -> dict[str, Query]:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql"))} | more
    for name in [name for name, sql in texts.items() if "FROM group_hourly" in sql]:
        daily = texts[name].replace("group_hourly", "group_daily")
        texts[name.replace("hours", "days")] = re.sub(r"\bhour\b", "event_date", daily)
    duckdb = [with_parameters(sql, "${}".format) for sql in texts.values()]
    return {
        name: Query(name, sql, own, read.parameters, read.tables, read.columns)
        for (name, sql), own, read in zip(texts.items(), duckdb, reads(duckdb), strict=True)
    }


def question(name: str, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
    """A query and its values, as the key of a kept answer.

    Args:
        name: The query.
        parameters: Its values. None, which stands for all, is not the name "None": somebody may call a group so.
    """
    return (name, *sorted((known, repr(value)) for known, value in parameters.items()))


def columns_read(of: Iterable[Query]) -> dict[str, frozenset[str]]:
    """Columns that may be read, by table or view: every column that a query names which reads the table."""
    found: dict[str, frozenset[str]] = {}
    for query in of:
        for table in ALL_TABLES:
            for name in query.tables & {table.name, f"{table.name}_current"}:
                named = query.columns.intersection(column.name for column in table.columns)
                found[name] = found.get(name, frozenset()) | named
    return found
