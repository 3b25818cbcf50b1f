"""Rules have no clock: every DuckDB function that depends on one is refused, and no new one can slip in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from streaming.alerts.rules.expressions import ExpressionError, check, connect

pytestmark = pytest.mark.turn(6)

_ROW = pa.schema(
    [("topic", pa.string()), ("seen", pa.timestamp("us", tz="UTC")), ("began", pa.timestamp("us", tz="UTC"))]
)

# Reviewed functions with their numbers of arguments: those of DuckDB 2.0.0 that a rule may use. After a new release,
# review the functions that the test reports as new: if the result depends only on the arguments, add the function here;
# else add it to `_CLOCKS` in streaming/alerts/rules/expressions.py.
_LOOKED_AT = Path(__file__).with_name("functions.txt")

_REFUSAL = "may depend on more than the row's values"


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as made:
        yield made


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("age(seen) > INTERVAL 1 DAY", "age"),
        ("AGE(seen) > INTERVAL 1 DAY", "age"),
        ('"age"(seen) > INTERVAL 1 DAY', "age"),
        ("list_transform([seen], lambda x: age(x))[1] > INTERVAL 1 DAY", "age"),
        ("current_localtimestamp() > seen::TIMESTAMP", "current_localtimestamp"),
        ("current_localtime() IS NULL", "current_localtime"),
        ("today() > seen::DATE", "today"),
        ("get_current_time() IS NULL", "get_current_time"),
        ("transaction_timestamp() > seen", "transaction_timestamp"),
        ("current_setting('TimeZone') = 'UTC'", "current_setting"),
        ("getvariable('x') IS NULL", "getvariable"),
        ("uuid() IS NULL", "uuid"),
        ("nextval('x') > 1", "nextval"),
    ],
)
def test_a_function_that_knows_a_clock_is_refused_by_name(
    connection: duckdb.DuckDBPyConnection, sql: str, name: str
) -> None:
    with pytest.raises(ExpressionError) as error:
        check(connection, _ROW, sql, ("BOOLEAN",))
    assert str(error.value).startswith(f"{name} {_REFUSAL}")


def test_the_time_between_two_values_of_a_row_is_no_clock(connection: duckdb.DuckDBPyConnection) -> None:
    assert check(connection, _ROW, "age(seen, began) > INTERVAL 1 DAY", ("BOOLEAN",)).columns == {"seen", "began"}


@pytest.mark.parametrize("sql", ["topic.lower() = 'x'", "seen.age() > INTERVAL 1 DAY", "main.age(seen) IS NULL"])
def test_a_function_behind_a_dot_is_refused_since_its_column_would_not_be_seen(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> None:
    with pytest.raises(ExpressionError, match=r"(lower|age) follows a dot: write (lower|age)\(...\)"):
        check(connection, _ROW, sql, ("BOOLEAN",))


@pytest.mark.nightly
def test_every_function_that_a_rule_may_use_was_looked_at(connection: duckdb.DuckDBPyConnection) -> None:
    listed = connection.execute(
        "SELECT DISTINCT function_name, len(parameters) FROM duckdb_functions() "
        "WHERE function_type = 'scalar' ORDER BY ALL"
    ).fetchall()
    # An operator may consist of several words.
    allowed = {f"{name.replace(' ', '_')}/{n}" for name, n in listed if _is_allowed(connection, name, n)}
    looked_at = set(_LOOKED_AT.read_text(encoding="utf-8").split())
    assert sorted(allowed - looked_at) == []
    assert sorted(looked_at - allowed) == []
    assert len(looked_at) > 800


def _is_allowed(connection: duckdb.DuckDBPyConnection, name: str, arguments: int) -> bool:
    """Whether a call is accepted up to DuckDB's own check of its arguments."""
    given = ", ".join(["NULL"] * arguments)
    try:
        check(connection, _ROW, f'"{name}"({given})', ())
    except ExpressionError as error:
        return _REFUSAL not in str(error)
    return True
