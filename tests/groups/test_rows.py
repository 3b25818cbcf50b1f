from __future__ import annotations

import typing

import pytest

from streaming.groups import Rows
from streaming.groups.rows import partition_column


@pytest.mark.parametrize("table", Rows.__struct_fields__)
def test_a_row_s_fields_are_the_table_s_columns_in_order(table: str) -> None:
    # Imported here: the tables load deltalake and pandas, and the tests of this folder start without.
    from streaming.tables import TABLES  # noqa: PLC0415

    (row,) = typing.get_args(typing.get_type_hints(Rows)[table])
    (schema,) = (t for t in TABLES if t.name == table)
    assert row.__struct_fields__ == tuple(column.name for column in schema.columns)


def test_every_table_that_the_core_writes_has_a_column_for_its_cluster() -> None:
    for table in Rows.__struct_fields__:
        (row,) = typing.get_args(typing.get_type_hints(Rows)[table])
        assert row.__struct_fields__[0] == "cluster"


def test_rows_are_true_when_any_table_has_one() -> None:
    rows = Rows()
    assert not rows
    rows.gaps.append(None)  # type: ignore[arg-type]
    assert rows


def test_an_unknown_log_partition_is_null() -> None:
    assert [partition_column(number) for number in (-1, 0, 49)] == [None, 0, 49]
