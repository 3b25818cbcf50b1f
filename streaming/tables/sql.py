"""What an SQL text reads, as DuckDB's own parser has it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from streaming.tables.memory import in_memory

# A comment, a text literal, or a parameter as Spark SQL has it, which DuckDB's parser refuses; not the cast `::DOUBLE`.
_PARAMETER = re.compile(r"--[^\n]*|'(?:[^']|'')*'|(?<!:):([A-Za-z_][A-Za-z0-9_]*)")


class SqlError(ValueError):
    """A text that does not parse; in the parser's words, on one line."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What the statements of a text read.

    Attributes:
        tables: Tables and views, without the text's own (WITH).
        columns: Names of columns, of whatever table.
        parameters: Names of parameters (`$name`).
    """

    tables: frozenset[str]
    columns: frozenset[str]
    parameters: frozenset[str]


def with_parameters(sql: str, put: Callable[[str], str]) -> str:
    """Put something in the place of each parameter `:name`, by its name."""
    return _PARAMETER.sub(lambda found: found[0] if found[1] is None else put(found[1]), sql)


def parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """The statements of a text, as `json_serialize_sql` has them.

    Raises:
        SqlError: It does not parse, or is no SELECT.
    """
    tree = json.loads(connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0][0])
    if tree.get("error"):
        message = " ".join(tree.get("error_message", "").split()).rstrip(".")
        raise SqlError(message)
    statements: list[dict[str, Any]] = tree["statements"]
    return statements


def reads(texts: Iterable[str]) -> list[Reads]:
    """What each text reads, without running it.

    Raises:
        SqlError: One does not parse.
    """
    with in_memory() as connection:
        return [_reads(list(nodes_of(parsed(connection, sql)))) for sql in texts]


def _reads(nodes: list[dict[str, Any]]) -> Reads:
    own = {entry["key"] for node in nodes if "cte_map" in node for entry in node["cte_map"]["map"]}
    columns = {node["column_names"][-1] for node in nodes if node.get("class") == "COLUMN_REF"}
    return Reads(
        tables=frozenset(node["table_name"] for node in nodes if node.get("type") == "BASE_TABLE") - own,
        columns=frozenset(columns.union(*(node.get("using_columns", ()) for node in nodes))),
        parameters=frozenset(node["identifier"] for node in nodes if node.get("class") == "PARAMETER"),
    )


def nodes_of(tree: object) -> Iterator[dict[str, Any]]:
    """Every object in what `parsed` returns, or in a part of it."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from nodes_of(part)
