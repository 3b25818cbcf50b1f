"""The parser decides which tables a query reads: names in comments, literals and aliases do not count."""

from __future__ import annotations

import duckdb
import pytest

from streaming.tables import SqlError, parsed, reads, with_parameters


def test_tables_columns_and_parameters_are_those_that_the_parser_finds() -> None:
    sql = """
        -- FROM drift, where somebody's :name stands
        WITH own AS (SELECT *, lag_total AS x FROM group_health WHERE cluster = $cluster AND state <> 'FROM lag')
        SELECT o.x, list_transform(findings, lambda f: f.finding) FROM own AS o JOIN rounds USING (round)
        ORDER BY members
    """
    (found,) = reads([sql])
    assert found.tables == {"group_health", "rounds"}
    assert {"lag_total", "cluster", "state", "findings", "round", "members"} <= found.columns
    assert "drift" not in found.columns
    assert found.parameters == {"cluster"}


def test_parameters_are_not_looked_for_in_comments_literals_and_casts() -> None:
    sql = "SELECT :a, ':a', 'it''s :a', x::DOUBLE -- :a of somebody's\n WHERE y = :b_2"
    assert with_parameters(sql, "${}".format) == (
        "SELECT $a, ':a', 'it''s :a', x::DOUBLE -- :a of somebody's\n WHERE y = $b_2"
    )


def test_a_text_that_does_not_parse_is_refused_in_one_line() -> None:
    with duckdb.connect() as connection, pytest.raises(SqlError, match=r"^syntax error[^\n]*[^.]$"):
        parsed(connection, "SELECT FROM\nWHERE")
