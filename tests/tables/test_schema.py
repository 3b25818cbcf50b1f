"""The tables' columns, how they are described, what a query reads of them, and files committed later."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from streaming.groups import rows
from streaming.tables import (
    ADVICE_TABLES,
    ALERT_TABLES,
    ALL_TABLES,
    FLEET_TABLES,
    ITSELF_TABLES,
    NOTE_TABLES,
    TABLES,
    VIEWS,
    DeltaLake,
    DeltaLogTail,
    SqlError,
    Table,
    new_files,
    parsed,
    reads,
    table_named,
    to_arrow,
    with_parameters,
)
from tests.empty_lake import empty_lake
from tests.job.hostile_rows import hostile_rows
from tests.maintain.build import row
from tests.tables.describe import describe

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


def test_rows_survive_packing_as_they_are() -> None:
    row = rows.GapRow("c", "log", "t", 1, 2, 3, None, None, "gone")
    packed = rows.encode_rows(rows.Rows(gaps=[row]))
    assert msgspec.msgpack.decode(packed, type=rows.Rows).gaps == [row]
    assert msgspec.msgpack.decode(packed)[6] == [["c", "log", "t", 1, 2, 3, None, None, "gone"]]


PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"


def test_the_page_is_as_the_schema_is() -> None:
    assert PAGE.read_text(encoding="utf-8") == describe(), "run python -m tests.tables.describe > docs/tables.md"


def test_every_column_of_every_table_is_on_the_page() -> None:
    page = describe()
    for table in ALL_TABLES:
        section = page.split(f"\n## {table.name}\n")[1].split("\n## ")[0]
        rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("- `")]
        shared = section.split("(#columns-of-many-tables): ")[1].split("\n")[0].split("`")[1::2]
        assert sorted([*rows, *shared]) == sorted(column.name for column in table.columns)
        assert (f"`{table.name}_current`" in section) == (f"{table.name}_current" in VIEWS)
    with_present = (*TABLES, *ALERT_TABLES, *ADVICE_TABLES, *NOTE_TABLES, *FLEET_TABLES, *ITSELF_TABLES)
    assert {f"{table.name}_current" for table in with_present} == set(VIEWS)


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


def _lake(folder: Path) -> DeltaLake:
    return empty_lake(folder)


def _rows(lake: DeltaLake, table: Table) -> Counter[str]:
    found = DeltaTable(lake.path(table.name)).to_pyarrow_dataset().to_table()
    return Counter(repr(list(row.items())) for row in found.to_pylist())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_they_have_the_rows_of_an_append_whatever_is_in_them(tmp_path: Path, table: Table) -> None:
    appended, committed = _lake(tmp_path / "appended"), _lake(tmp_path / "committed")
    rows = to_arrow(table, hostile_rows(table, "1"))
    appended.append(table.name, rows, "query", 1)
    files = new_files(table, rows, committed.path(table.name))
    assert _rows(committed, table) == Counter(), "a file was seen before its commit"
    assert committed.add_files(table.name, files, "query", 1)
    assert not committed.add_files(table.name, files, "query", 1)
    assert _rows(committed, table) == _rows(appended, table)
    assert _rows(committed, table).total() == rows.num_rows


def _without_day(rows: list[list[Any]], table: Table) -> list[list[Any]]:
    place = [column.name for column in table.columns].index("event_date")
    return [[None if number == place else cell for number, cell in enumerate(one)] for one in rows]


def test_rows_without_a_day_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    table, lake = table_named("lag"), _lake(tmp_path)
    dated = row("lag", 0, 1, topic="t", partition=0)
    rows = to_arrow(table, [dated, *_without_day([dated], table)])
    files = new_files(table, rows, lake.path("lag"))
    expected = {rows["event_date"][0].as_py().isoformat(), None}
    assert {file.partition_values["event_date"] for file in files} == expected
    lake.add_files("lag", files, "query", 1)
    days = DeltaTable(lake.path("lag")).to_pyarrow_dataset().to_table(["event_date"])["event_date"].to_pylist()
    assert {day and day.isoformat() for day in days} == expected


def test_a_follower_finds_day_cluster_and_time_of_them_in_the_log(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
    tail.read_new_files()
    rows = to_arrow(table_named("lag"), [row("lag", 0, n, topic="t", partition=0) for n in (1, 2)])
    lake.add_files("lag", new_files(table_named("lag"), rows, lake.path("lag")), "query", 1)
    [file] = tail.read_new_files().files
    newest = max(rows["round_time"].to_pylist())
    assert (file.day, file.newest) == (rows["event_date"][0].as_py(), newest)
    assert file.clusters == (rows["cluster"][0].as_py(),) * 2
    assert tail.read([file], ["round"])["round"].to_pylist() == [1, 2]


def test_files_of_a_batch_that_is_there_already_are_no_part_of_the_table(tmp_path: Path) -> None:
    table, lake = table_named("gaps"), _lake(tmp_path)
    rows = to_arrow(table, hostile_rows(table, "1"))
    lake.append("gaps", rows, "query", 1)
    files = new_files(table, rows, lake.path("gaps"))
    assert not lake.add_files("gaps", files, "query", 1)
    assert ds.dataset(lake.path("gaps"), exclude_invalid_files=True).count_rows() > rows.num_rows
    assert _rows(lake, table).total() == rows.num_rows
