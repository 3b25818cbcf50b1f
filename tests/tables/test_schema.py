from __future__ import annotations

import msgspec
import pytest

from streaming.groups import rows
from streaming.tables import ALL_TABLES, TABLES, Table, ddl, table_named

_ROW_CLASSES = {
    "rebalance_churn": rows.ChurnRow,
    "drift": rows.DriftRow,
    "lag": rows.LagRow,
    "group_health": rows.GroupHealthRow,
    "members": rows.MemberRow,
    "what_if": rows.WhatIfRow,
    "quarantine": rows.QuarantineRow,
    "gaps": rows.GapRow,
    "open_transactions": rows.OpenTransactionRow,
    "rounds": rows.RoundRow,
}


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_row_of_the_core_has_the_columns_of_its_table(table: Table) -> None:
    assert _ROW_CLASSES[table.name].__struct_fields__ == tuple(column.name for column in table.columns)


def test_the_core_writes_exactly_the_tables_there_are() -> None:
    assert set(rows.Rows.__struct_fields__) == {table.name for table in TABLES}


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda t: t.name)
def test_every_column_says_what_it_means(table: Table) -> None:
    assert [column.name for column in table.columns if len(column.comment) < 5] == []


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda t: t.name)
def test_key_and_order_of_the_current_view_are_columns(table: Table) -> None:
    names = {column.name for column in table.columns}
    assert set(table.key) | set(table.newest_by) | set(table.partition_by) <= names
    assert table.closes == ("ended" in names)


def test_a_decision_has_the_same_key_in_every_table() -> None:
    assert table_named("rebalance_churn").key == ("cluster", "group_id", "decision")
    for name in ("rebalance_churn", "drift", "what_if", "members"):
        columns = [column.name for column in table_named(name).columns]
        assert columns[:3] == ["cluster", "group_id", "decision"]
        assert {"log_partition", "record_time"} <= set(columns)


@pytest.mark.parametrize("table", [t for t in TABLES if "group_id" in t.key], ids=lambda t: t.name)
def test_every_table_about_groups_says_what_told_of_them(table: Table) -> None:
    assert "source" in {column.name for column in table.columns}


def test_rounds_are_written_last() -> None:
    assert TABLES[-1] is table_named("rounds")


def test_ddl_quotes_what_a_comment_or_a_folder_may_hold() -> None:
    made = ddl(table_named("gaps"), "/lake/it`s")
    assert "delta.`/lake/it``s`" in made
    assert "'delta.logRetentionDuration' = 'interval 7 days'" in made


def test_rows_survive_packing_as_they_are() -> None:
    row = rows.GapRow("c", "log", "t", 1, 2, 3, None, None, "gone")
    packed = rows.encode_rows(rows.Rows(gaps=[row]))
    assert rows.decode_rows(packed).gaps == [row]
    assert msgspec.msgpack.decode(packed)[6] == [["c", "log", "t", 1, 2, 3, None, None, "gone"]]
