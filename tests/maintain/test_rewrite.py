"""Compaction: the same rows, all columns, sorted. (Spark reads its files in `tests/tables/test_spark.py`.)"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from streaming.tables import (
    ALL_TABLES,
    DeltaLake,
    LakeReader,
    Table,
    table_named,
    to_arrow,
)
from tests.maintain.build import (
    Writer,
    files_of,
    maintain,
    row,
    rows_of,
)

pytestmark = pytest.mark.turn(6)


def test_many_small_files_become_one_with_the_same_rows(lake: DeltaLake, writer: Writer) -> None:
    for number in range(12):
        writer.append("lag", *(row("lag", 0, number, topic="t", partition=p, lag=number) for p in range(3)))
    before = rows_of(lake, "lag")
    maintain(lake)
    assert files_of(lake)["lag"] == 1
    assert rows_of(lake, "lag") == before


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_small_files_of_any_table_become_one(lake: DeltaLake, writer: Writer, table: Table) -> None:
    for number in range(3):
        writer.append(table.name, row(table.name, 0, number))
    before = rows_of(lake, table.name)
    maintain(lake)
    assert files_of(lake)[table.name] == 1
    assert rows_of(lake, table.name) == before


def test_a_groups_history_lies_together(lake: DeltaLake, writer: Writer) -> None:
    for number in range(4):
        writer.append(
            "lag",
            *(row("lag", 0, number, group_id=g, topic="t", partition=p) for g in ("b", "a") for p in (1, 0)),
        )
    maintain(lake)
    (path,) = DeltaTable(lake.path("lag")).file_uris()
    found = pq.read_table(path, columns=["group_id", "partition", "round"]).to_pylist()
    assert [(f["group_id"], f["partition"], f["round"]) for f in found] == [
        (group, partition, number) for group in ("a", "b") for partition in (0, 1) for number in range(4)
    ]


def test_every_column_comes_through_as_it_was(lake: DeltaLake, writer: Writer) -> None:
    finding = [["unassigned", 5_000, "x"], ["rewound", 6_000, None]]
    for number in range(3):
        writer.append(
            "group_health",
            row("group_health", 0, number, group_id="a'\"\n", findings=finding, imbalance=0.5, members=None),
            row("group_health", 0, number, group_id="", findings=[], lag_total=2**63 - 1),
        )
        writer.append(
            "drift",
            row(
                "drift",
                0,
                number,
                drifted_partitions=[["t", 0, "misplaced", "m", ["n"], None]],
                inputs=b"\x00\xff" * 100,
            ),
        )
    before = {name: rows_of(lake, name) for name in ("group_health", "drift")}
    maintain(lake)
    assert files_of(lake)["group_health"] == files_of(lake)["drift"] == 1
    assert {name: rows_of(lake, name) for name in before} == before


def test_files_of_an_older_release_without_a_column_are_joined_with_newer_ones(tmp_path: Path) -> None:
    table = table_named("lag")
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create([replace(table, columns=table.columns[:-1])])
    for number in range(3):
        old = to_arrow(table, [row("lag", 0, number, topic="t", partition=0)]).drop_columns([table.columns[-1].name])
        lake.append("lag", old, "query", number)
    lake = DeltaLake(lake.root)
    lake.create(ALL_TABLES)
    lake.append("lag", [row("lag", 0, 3, topic="t", partition=0, client_host="/h")], "query", 3)
    maintain(lake)
    assert files_of(lake)["lag"] == 1
    found = LakeReader(lake.root).rows("SELECT client_host FROM lag ORDER BY round")
    assert [f["client_host"] for f in found] == [None, None, None, "/h"]
