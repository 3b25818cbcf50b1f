"""Files that are written first and committed later, as the executors' are: the same table as by an append."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from streaming.tables import (
    TABLES,
    DeltaLake,
    DeltaLogTail,
    Table,
    new_files,
    table_named,
    to_arrow,
)
from tests.empty_lake import empty_lake
from tests.job.hostile_rows import hostile_rows
from tests.maintain.build import row


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
