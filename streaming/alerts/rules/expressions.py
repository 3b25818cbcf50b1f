"""SQL of the rules: expressions over one row, read-only, whose result depends on that row alone; and templates.

So an alert does not depend on when, or in what portions, the tables are read: whether a rule holds for a key changes
only with a new row of that key. Therefore anything that reads a clock, a random number, another row or another table is
refused at the start.

In templates of messages and labels `{name}` stands for a value, and `{name:noun}` for a count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from streaming.tables import SqlError, nodes_of, parsed
from streaming.terminal import visible

# Short names for the contents of nested columns; everything else is DuckDB's.
_MACROS = (
    "has_finding(findings, name) AS list_contains(list_transform(findings, lambda f: f.finding), name)",
    "has_any_finding(findings, names) AS list_has_any(list_transform(findings, lambda f: f.finding), names)",
    "finding_detail(findings, name) AS list_filter(findings, lambda f: f.finding = name)[1].detail",
    "kinds(drifted_partitions, name) AS len(list_filter(drifted_partitions, lambda p: p.kind = name))",
)

# Macros of DuckDB that come to functions of their arguments; its others are not allowed.
_PLAIN_MACROS = ("nullif", "if", "list_avg", "list_max", "list_min", "list_sum")

# The parts that an expression over one row may have. Subqueries, windows, stars and parameters are not among them.
_CLASSES = frozenset(
    {
        "BETWEEN",
        "CASE",
        "CAST",
        "COLLATE",
        "COLUMN_REF",
        "COMPARISON",
        "CONJUNCTION",
        "CONSTANT",
        "FUNCTION",
        "LAMBDA",
        "OPERATOR",
        "TYPE",
    }
)

# Functions that read the clock although DuckDB lists them as consistent, with the number of arguments for which they
# do: `age(x)` is the time from x until today, `age(x, y)` the time between two values of the row. The tests compare
# DuckDB's own list of functions with the one that was reviewed, so that no release can add another unnoticed.
_CLOCKS = {"age": 1, "current_localtime": 0, "current_localtimestamp": 0}


class ExpressionError(ValueError):
    """An expression that a rule cannot have; the text is a clause without a full stop."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression.

    Attributes:
        sql: Its text.
        columns: Columns of the row that it reads.
    """

    sql: str
    columns: frozenset[str]


def connect() -> duckdb.DuckDBPyConnection:
    """A connection to the database of the rules; what is registered with it is its own."""
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """A database in memory that reaches no file and no network, with the rules' own macros: made once, in 50 ms."""
    connection = duckdb.connect(config={"enable_external_access": "false", "threads": "1"})
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")
    return connection


@cache
def _known_functions() -> dict[str, bool]:
    """Whether a function is plain, by name: scalar ones that DuckDB lists as consistent, and some macros."""
    listed = (
        _database()
        .cursor()
        .execute(
            "SELECT lower(function_name), "
            "bool_and(list_contains(?, function_name) OR (function_type = 'scalar' AND stability = 'CONSISTENT')) "
            "FROM duckdb_functions() GROUP BY ALL",
            [[*_PLAIN_MACROS, *(macro.partition("(")[0] for macro in _MACROS)]],
        )
    )
    return dict(listed.fetchall())


def check(connection: duckdb.DuckDBPyConnection, schema: pa.Schema, sql: str, types: Sequence[str]) -> Expression:
    """Check one expression over a row.

    Args:
        connection: One of `connect`.
        schema: Columns of the row.
        sql: The expression.
        types: DuckDB types that the result may have; empty allows any.

    Raises:
        ExpressionError: It does not parse, reads more than its row, or has another type.
    """
    _parse(connection, sql, "{}")  # so that no bracket in it closes one of ours
    names = {column.lower(): column for column in schema.names}
    read = _columns(_parse(connection, sql), frozenset(names))
    connection.register("row_of_rule", schema.empty_table())
    try:
        found = connection.execute(f"DESCRIBE SELECT (\n{sql}\n) AS x FROM row_of_rule").fetchall()[0][1]  # noqa: S608
    except duckdb.Error as error:
        raise ExpressionError(_first_line(error)) from None
    finally:
        connection.unregister("row_of_rule")
    if types and found not in types:
        message = f"{sql!r} is {found}, it must be {' or '.join(types)}"
        raise ExpressionError(message)
    return Expression(sql, frozenset(names[name] for name in read))


def _parse(connection: duckdb.DuckDBPyConnection, sql: str, frame: str = "(\n{}\n)") -> dict[str, Any]:
    whole = "SELECT " + frame.replace("{}", sql)
    try:
        statements = parsed(connection, whole)
    except SqlError as error:
        message = f"{sql!r} is not an SQL expression ({error})"
        raise ExpressionError(message) from None
    node = statements[0]["node"] if len(statements) == 1 else {}
    plain = (
        node.get("type") == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and node["from_table"]["type"] == "EMPTY"
        and not any(node.get(part) for part in ("where_clause", "having", "qualify", "sample", "modifiers"))
    )
    if not plain:
        message = f"{sql!r} is more than one expression"
        raise ExpressionError(message)
    tree: dict[str, Any] = node["select_list"][0]
    return tree


def _columns(tree: object, names: frozenset[str]) -> set[str]:
    """Check an expression part by part; returns the columns that it reads, in lower case.

    Args:
        tree: The parsed expression.
        names: Columns of the row, in lower case.
    """
    parts = _parts(tree)
    own = {name for part in parts if part["class"] == "LAMBDA" for name in _named(part["lhs"])}
    found: set[str] = set()
    for part in parts:
        kind = part["class"]
        if kind not in _CLASSES:
            message = f"a {kind.lower()} reads more than the row: only expressions over the row's columns are allowed"
            raise ExpressionError(message)
        if kind == "COLUMN_REF":
            found |= _named(part)
        elif kind == "FUNCTION":
            _check_call(part)
    # DuckDB treats current_date and the like, without brackets, as columns as long as it can.
    strange = sorted(found - own - names)
    if strange:
        message = f"there is no column {strange[0]}"
        raise ExpressionError(message)
    return found & names


def _parts(tree: object) -> list[dict[str, Any]]:
    """Every part of a parsed expression."""
    return [node for node in nodes_of(tree) if node.get("class") is not None]


def _named(tree: object) -> set[str]:
    """Names of columns in a part, or of the parameters of a lambda."""
    return {part["column_names"][0].lower() for part in _parts(tree) if part["class"] == "COLUMN_REF"}


def _check_call(call: Mapping[str, Any]) -> None:
    name = call["function_name"].lower()
    if call["schema"] or call["catalog"]:
        # `topic.lower()` parses as a function of a schema called topic: the column would not be noticed.
        message = f"{name} follows a dot: write {name}(...)"
        raise ExpressionError(message)
    is_plain = _known_functions().get(name)
    if is_plain is None:
        message = f"there is no function {name}"
        raise ExpressionError(message)
    if not is_plain or len(call["arguments"]) == _CLOCKS.get(name):
        message = f"{name} may depend on more than the row's values: use functions of these, and the row's own times"
        raise ExpressionError(message)


def _first_line(error: duckdb.Error) -> str:
    return " ".join(str(error).split("\n\n", maxsplit=1)[0].split()).rstrip(".")


_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?::([a-z]+))?\}")

# Numbers that identify something, and are searched for elsewhere: printed without separators.
_IDENTIFIERS = re.compile(r"(_id|partition|round|generation)$")


def placeholders(template: str) -> frozenset[str]:
    """Names between braces; everything else in a template is literal."""
    return frozenset(name for name, _ in _PLACEHOLDER.findall(template))


def fill(template: str, values: Mapping[str, object]) -> str:
    """Fill in a message's template with a row's values: names are text, whatever they contain; NULL is "unknown"."""

    def put(found: re.Match[str]) -> str:
        name, noun = found.groups()
        text = _shown(name, values.get(name))
        if noun is None:
            return text
        return f"{text} {noun}{'' if text == '1' else 's'}"

    return _PLACEHOLDER.sub(put, template)


def _shown(name: str, value: object) -> str:
    if isinstance(value, int) and _IDENTIFIERS.search(name):
        return str(value)
    return _text(value)


def _text(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return f"{value:,.0f}"
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, dict):
        return _text(value.get("detail") or value.get("finding") or ", ".join(map(_text, value.values())))
    if isinstance(value, list):
        if value:
            return visible("; ".join(map(_text, value)))
        return "none"
    return visible(str(value))
