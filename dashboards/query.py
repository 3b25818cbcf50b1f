"""The panels' queries: SQL files that run in DuckDB and in Spark.

A file begins with a comment: the question that it answers, its parameters (`:name  TYPE  meaning`), its columns. The
tables and columns that it reads are found in its text, so a new panel is one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from streaming.tables import ALL_TABLES

__all__ = ["FOLDER", "Query", "columns_read", "queries"]

FOLDER = Path(__file__).parent / "queries"

_PARAMETER = re.compile(r"^--\s+:(?P<name>[a-z_]+)\s+(?P<type>[A-Z]+)\s", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_WORD = re.compile(r"[a-z_]+")


@dataclass(frozen=True, slots=True)
class Query:
    """One query file.

    Attributes:
        name: File name without ".sql".
        question: The question it answers: the first line of its comment.
        parameters: Types by name, as in Spark SQL.
        sql: The text as in the file, the form that Spark's `sql(text, args=...)` takes.
    """

    name: str
    question: str
    parameters: dict[str, str]
    sql: str

    @property
    def duckdb(self) -> str:
        """The query for DuckDB, where a parameter is `$name`; values never become text."""
        text = _COMMENT.sub("", self.sql)
        names = "|".join(self.parameters)
        return re.sub(rf":({names})\b", r"$\1", text) if names else text

    @property
    def tables(self) -> frozenset[str]:
        """Tables and `_current` views that it reads."""
        words = set(_WORD.findall(_COMMENT.sub("", self.sql)))
        text = " ".join(_COMMENT.sub("", self.sql).split())
        known = {name for table in ALL_TABLES for name in (table.name, f"{table.name}_current")}
        return frozenset(name for name in known & words if re.search(rf"\b(FROM|JOIN) {name}\b", text))


@cache
def queries() -> dict[str, Query]:
    """All queries by name."""
    return {path.stem: _query(path) for path in sorted(FOLDER.glob("*.sql"))}


def columns_read(of: Iterable[Query]) -> dict[str, frozenset[str]]:
    """Columns that may be read, by table or view: every column whose name occurs in a query that reads the table."""
    found: dict[str, frozenset[str]] = {}
    for query in of:
        words = set(_WORD.findall(_COMMENT.sub("", query.sql)))
        for table in ALL_TABLES:
            named = frozenset(column.name for column in table.columns) & words
            for name in (table.name, f"{table.name}_current"):
                if name in query.tables:
                    found[name] = found.get(name, frozenset()) | named
    return found


def _query(path: Path) -> Query:
    sql = path.read_text(encoding="utf-8")
    first = sql.split("\n", 1)[0].removeprefix("--").strip()
    return Query(path.stem, first, {m["name"]: m["type"] for m in _PARAMETER.finditer(sql)}, sql)
