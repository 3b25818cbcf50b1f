"""Compaction: the same rows, all columns, sorted, for Spark too."""

from __future__ import annotations

import json
import subprocess
import sys
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
    TODAY,
    Writer,
    files_of,
    maintain,
    row,
    rows_of,
)


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


_SPARK = """
import json, sys
from pyspark.sql import SparkSession
from streaming.jars import classpath

spark = (
    SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, classpath("spark"))))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    .config("spark.databricks.delta.snapshotPartitions", "1").config("spark.sql.shuffle.partitions", "1")
    # A few small queries, each run once: compiling any of them costs more than running it.
    .config("spark.sql.codegen.wholeStage", "false").config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
lag = spark.read.format("delta").load(sys.argv[1] + "/lag")
found = {
    "rows": sorted(map(tuple, lag.select("group_id", "partition", "round", "lag").collect())),
    "newest": lag.where("round_time >= timestamp_millis(" + sys.argv[2] + ")").count(),
    "one": lag.where("group_id = 'b' AND partition = 1").count(),
}
print("ANSWER" + json.dumps(found))
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_reads_a_maintained_table(lake: DeltaLake, writer: Writer) -> None:
    for number in range(30):
        keys = [(group, partition) for group in "ab" for partition in (0, 1)]
        day = -50 if number < 10 else 0
        rows = [row("lag", day, number, group_id=g, topic="t", partition=p, lag=number) for g, p in keys]
        writer.append("lag", *rows)
    writer.append("lag", row("lag", -50, 5, group_id="old", topic="t", partition=0, lag=5))
    writer.round(0, 99)
    maintain(lake)
    since = TODAY * 86_400_000 + 25
    run = subprocess.run(
        [sys.executable, "-c", _SPARK, lake.root, str(since)], capture_output=True, text=True, check=True
    )
    answer = json.loads(run.stdout.partition("ANSWER")[2])
    expected = [[g, p, n, n] for g in "ab" for p in (0, 1) for n in range(10, 30)] + [["old", 0, 5, 5]]
    assert answer == {"rows": sorted(expected), "newest": 5 * 4, "one": 20}
