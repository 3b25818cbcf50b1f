from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pyarrow as pa
import pytest

from streaming.groups import rows
from streaming.tables import ALL_TABLES, TABLES, Table, table_named

_ROWS = {field.name: get_args(field.type)[0] for field in msgspec.structs.fields(rows.Rows)}

_PLAIN = {
    pa.string(): str,
    pa.int32(): int,
    pa.int64(): int,
    pa.timestamp("us", "UTC"): int,
    pa.date32(): int,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.binary(): bytes,
}


def _misfits(name: str, column: pa.DataType, field: Any) -> list[str]:
    """Names of what a column of this type could not hold in its order: of the field, or of parts of it."""
    (kind,) = [part for part in get_args(field) or (field,) if part is not NoneType] if _is_union(field) else [field]
    if pa.types.is_list(column):
        is_list = get_origin(kind) in (list, tuple)
        return _misfits(name, column.value_type, get_args(kind)[0]) if is_list else [name]
    if not pa.types.is_struct(column):
        return [] if _PLAIN[column] is kind else [name]
    parts = msgspec.structs.fields(kind)
    if [part.name for part in parts] != [column.field(at).name for at in range(column.num_fields)]:
        return [name]
    return [
        bad
        for at, part in enumerate(parts)
        for bad in _misfits(f"{name}.{part.name}", column.field(at).type, part.type)
    ]


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_row_of_the_core_has_the_columns_of_its_table_in_order_and_values_that_they_hold(table: Table) -> None:
    fields = msgspec.structs.fields(_ROWS[table.name])
    assert [field.name for field in fields] == [column.name for column in table.columns]
    pairs = zip(table.columns, fields, strict=True)
    assert [bad for column, field in pairs for bad in _misfits(column.name, column.type.arrow, field.type)] == []


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


def test_rows_survive_packing_as_they_are() -> None:
    row = rows.GapRow("c", "log", "t", 1, 2, 3, None, None, "gone")
    packed = rows.encode_rows(rows.Rows(gaps=[row]))
    assert msgspec.msgpack.decode(packed, type=rows.Rows).gaps == [row]
    assert msgspec.msgpack.decode(packed)[6] == [["c", "log", "t", 1, 2, 3, None, None, "gone"]]
