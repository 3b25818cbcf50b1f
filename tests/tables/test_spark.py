"""Spark with Delta's own reader, as a second opinion on the files of delta-rs and of our maintenance.

One session answers for all tests of this module: each part of its program writes an answer of its own, or why it has
none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from streaming.tables import ALL_TABLES, VIEWS, DeltaLake, LakeReader, table_named
from streaming.times import DAY_MS
from tests.maintain.build import TODAY, Writer, maintain, new_lake, row

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.turn(3)]

_SPARK = """
import json, sys, traceback
from pyspark.sql import SparkSession
from streaming.catalog.statements import statements
from streaming.jars import classpath
from streaming.tables import ALL_TABLES, ddl
from streaming.tables.read import VIEWS

lake, made_by_spark, maintained, since = sys.argv[1:]
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


def read(root, table):
    return spark.read.format("delta").load(f"{root}/{table}")


def rows():
    for table in ALL_TABLES:
        read(lake, table.name).createOrReplaceTempView(table.name)
    for name, sql in VIEWS.items():
        spark.sql(sql).createOrReplaceTempView(name)
    names = [*(t.name for t in ALL_TABLES), *VIEWS]
    lines = " UNION ALL ".join(f"SELECT '{name}' AS name, to_json(struct(*)) AS row FROM {name}" for name in names)
    found = {name: [] for name in names}
    for name, row in sorted(spark.sql(lines).collect()):
        found[name].append(str(json.loads(row)))
    return found


def schemas_that_differ():
    for table in ALL_TABLES:
        spark.sql(ddl(table, f"{made_by_spark}/{table.name}"))
    return [t.name for t in ALL_TABLES if read(made_by_spark, t.name).schema != read(lake, t.name).schema]


def after_maintenance():
    lag = read(maintained, "lag")
    return {
        "rows": sorted(map(tuple, lag.select("group_id", "partition", "round", "lag").collect())),
        "newest": lag.where(f"round_time >= timestamp_millis({since})").count(),
        "one": lag.where("group_id = 'b' AND partition = 1").count(),
    }


def statements_that_spark_refuses():
    parser = spark._jsparkSession.sessionState().sqlParser()
    present = {t.name: [c.name for c in t.columns] for t in ALL_TABLES}
    refused = []
    for statement in statements("spark", "/a lake/of `1'", "evenkeel", present):
        try:
            parser.parsePlan(statement)
        except Exception as error:
            refused.append(f"{statement}: {error}")
    return refused


answers = {}
for part in (rows, schemas_that_differ, after_maintenance, statements_that_spark_refuses):
    try:
        answers[part.__name__] = part()
    except Exception:
        traceback.print_exc()
print("ANSWERS" + json.dumps(answers))
"""


def _row(table: str, **values: Any) -> list[Any]:
    return [values.get(column.name) for column in table_named(table).columns]


def _fill(lake: DeltaLake) -> None:
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


def _fill_and_maintain(lake: DeltaLake) -> None:
    writer = Writer(lake)
    for number in range(30):
        keys = [(group, partition) for group in "ab" for partition in (0, 1)]
        day = -50 if number < 10 else 0
        rows = [row("lag", day, number, group_id=g, topic="t", partition=p, lag=number) for g, p in keys]
        writer.append("lag", *rows)
    writer.append("lag", row("lag", -50, 5, group_id="old", topic="t", partition=0, lag=5))
    writer.round(0, 99)
    maintain(lake)


class Witness:
    """What Spark says about two lakes.

    Attributes:
        lake: The one that only the job has written.
    """

    def __init__(self, lake: DeltaLake, answers: dict[str, Any], errors: str) -> None:
        self.lake = lake
        self._answers = answers
        self._errors = errors

    def says(self, part: str) -> Any:
        """The answer of one part of the program."""
        assert part in self._answers, self._errors
        return self._answers[part]


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Witness:
    folder = tmp_path_factory.mktemp("witness")
    lake, maintained = new_lake(folder / "written"), new_lake(folder / "maintained")
    _fill(lake)
    _fill_and_maintain(maintained)
    since = TODAY * DAY_MS + 25
    command = [sys.executable, "-c", _SPARK, lake.root, str(folder / "spark"), maintained.root, str(since)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, cwd=folder, env=os.environ, check=False)
    assert "ANSWERS" in done.stdout, done.stderr[-3000:]
    return Witness(lake, json.loads(done.stdout.split("ANSWERS", 1)[1]), done.stderr[-6000:])


def test_spark_reads_the_same_rows_and_views(witness: Witness) -> None:
    answer = witness.says("rows")
    reader = LakeReader(witness.lake.root)
    counts = {name: reader.count(name) for name in answer}
    assert {name: len(rows) for name, rows in answer.items()} == counts
    assert counts["group_health_current"] == 1
    assert counts["drift_current"] == 1
    assert counts["rebalance_churn_current"] == 1
    assert "'unassigned_partition_seconds_max': 1.5" in answer["rebalance_churn_current"][0]
    assert "'actual': ['n', 'o']" in answer["drift_current"][0]
    assert len(counts) == len(ALL_TABLES) + len(VIEWS)


def test_spark_makes_the_same_tables(witness: Witness) -> None:
    assert witness.says("schemas_that_differ") == []


def test_spark_reads_a_maintained_table(witness: Witness) -> None:
    expected = [[g, p, n, n] for g in "ab" for p in (0, 1) for n in range(10, 30)] + [["old", 0, 5, 5]]
    assert witness.says("after_maintenance") == {"rows": sorted(expected), "newest": 5 * 4, "one": 20}


def test_spark_parses_the_statements_that_register_tables(witness: Witness) -> None:
    """Running them against a metastore takes a minute: `tests/catalog/test_spark.py`, with the soak tests."""
    assert witness.says("statements_that_spark_refuses") == []
