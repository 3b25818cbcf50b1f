"""Spark with Delta's own reader, as a second opinion on the files of delta-rs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streaming.tables import ALL_TABLES, VIEWS, DeltaLake, LakeReader, table_named

pytestmark = pytest.mark.turn(3)

_SPARK = """
import json, sys
from pyspark.sql import SparkSession
from streaming.jars import classpath
from streaming.tables import ALL_TABLES, ddl
from streaming.tables.read import VIEWS

lake, made_by_spark = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").appName("witness")
    .config("spark.jars", ",".join(map(str, classpath("spark"))))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    .config("spark.databricks.delta.snapshotPartitions", "1").config("spark.sql.shuffle.partitions", "1")
    # A hundred small queries, each run once: compiling any of them costs more than running it.
    .config("spark.sql.codegen.wholeStage", "false").config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
answer = {"rows": {}, "schema_differs": []}
for table in ALL_TABLES:
    frame = spark.read.format("delta").load(f"{lake}/{table.name}")
    frame.createOrReplaceTempView(table.name)
    spark.sql(ddl(table, f"{made_by_spark}/{table.name}"))
    own = spark.read.format("delta").load(f"{made_by_spark}/{table.name}")
    if own.schema != frame.schema:
        answer["schema_differs"].append(table.name)
for name, sql in VIEWS.items():
    spark.sql(sql).createOrReplaceTempView(name)
names = [*(t.name for t in ALL_TABLES), *VIEWS]
lines = " UNION ALL ".join(f"SELECT '{name}' AS name, to_json(struct(*)) AS row FROM {name}" for name in names)
answer["rows"] = {name: [] for name in names}
for name, row in sorted(spark.sql(lines).collect()):
    answer["rows"][name].append(str(json.loads(row)))
print("ANSWER" + json.dumps(answer))
"""


def _row(table: str, **values: Any) -> list[Any]:
    return [values.get(column.name) for column in table_named(table).columns]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_reads_the_same_rows_and_views_and_makes_the_same_tables(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create(ALL_TABLES)
    for table, rows in {
        "group_health": [
            _row(
                "group_health",
                cluster="c",
                group_id="a'\"\n",
                round=1,
                round_time=1_000,
                event_date=0,
                ended=False,
                verdict="drifted",
                findings=[["partitions_pending_handover", 5_000, "x"]],
                imbalance=0.5,
            ),
            _row(
                "group_health",
                cluster="c",
                group_id="a'\"\n",
                round=2,
                round_time=2_000,
                event_date=0,
                ended=False,
                verdict="identical",
                findings=[],
            ),
            _row(
                "group_health",
                cluster="c",
                group_id="b",
                round=2,
                round_time=2_000,
                event_date=0,
                ended=True,
                findings=[],
            ),
        ],
        "drift": [
            _row(
                "drift",
                cluster="c",
                group_id="a'\"\n",
                round_time=1_000,
                round=1,
                event_date=0,
                decision=1,
                drifted_partitions=[["t", 0, "misplaced", "m", ["n", "o"], None]],
            ),
            _row(
                "drift",
                cluster="c",
                group_id="b",
                round_time=1_000,
                round=1,
                event_date=0,
                decision=1,
                drifted_partitions=[],
            ),
        ],
        "members": [
            _row(
                "members",
                cluster="c",
                group_id="b",
                member_id="m",
                decision=3,
                record_time=0,
                event_date=0,
                ended=False,
                subscription=["t"],
                partitions=[["t", [0, 1], None]],
            ),
        ],
        "rebalance_churn": [
            _row(
                "rebalance_churn",
                cluster="c",
                group_id="b",
                log_partition=1,
                decision=3,
                revision=revision,
                event_date=0,
                joined=["m"],
                replaced=[["i", "x", "y"]],
                unassigned_partition_seconds_max=cost,
            )
            for revision, cost in ((1, None), (2, 1.5))
        ],
        "quarantine": [_row("quarantine", cluster="c", topic="t", partition=1, record_offset=5, key=b"\0\xff")],
    }.items():
        assert lake.append(table, rows, "query", 0) == len(rows)

    command = [sys.executable, "-c", _SPARK, lake.root, str(tmp_path / "spark")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=580, cwd=tmp_path, env=os.environ, check=False
    )
    assert "ANSWER" in done.stdout, done.stderr[-3000:]
    answer = json.loads(done.stdout.split("ANSWER", 1)[1])

    assert answer["schema_differs"] == []
    reader = LakeReader(lake.root)
    counts = {name: reader.count(name) for name in answer["rows"]}
    assert {name: len(rows) for name, rows in answer["rows"].items()} == counts
    assert counts["group_health_current"] == 1
    assert counts["drift_current"] == 1
    assert counts["rebalance_churn_current"] == 1
    assert "'unassigned_partition_seconds_max': 1.5" in answer["rows"]["rebalance_churn_current"][0]
    assert "'actual': ['n', 'o']" in answer["rows"]["drift_current"][0]
    assert len(counts) == len(ALL_TABLES) + len(VIEWS)
