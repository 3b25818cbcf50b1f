"""The printed statements in a real Spark with Delta's catalog and a metastore on disk; DuckDB and Polars beside it.

A metastore on disk takes two Spark sessions a minute. `tests/dashboards/test_queries.py` runs the same statements with
one in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyspark
import pytest
from deltalake import DeltaTable

from streaming.jars import classpath, find_java
from streaming.tables import ALL_TABLES, VIEWS, DeltaLake, LakeReader, table_named

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.turn(3)]

# Names that each engine quotes in its own way.
LAKE = "l'a \"k` e"

_READ = """
import json, sys
from pyspark.sql import SparkSession

names = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
answer = {
    "names": [row.tableName for row in spark.sql("SHOW TABLES IN evenkeel").collect()],
    "schema_left": spark.sql("SELECT current_schema()").first()[0],
    "rows": {name: [row.asDict(recursive=True) for row in spark.table(name).collect()] for name in names},
    "comments": {
        name: {row.col_name: row.comment for row in spark.sql(f"DESCRIBE {name}").collect()}
        for name in names if "group_health" in name
    },
    "properties": {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES evenkeel.group_health").collect()},
    "kind": {
        row.col_name: row.data_type for row in spark.sql("DESCRIBE EXTENDED evenkeel.group_health").collect()
    },
}
print("ANSWER" + json.dumps(answer, default=str))
"""


def _row(table: str, **values: Any) -> list[Any]:
    return [{"cluster": "c", "event_date": 0, **values}.get(column.name) for column in table_named(table).columns]


def _lake(root: Path) -> DeltaLake:
    lake = DeltaLake(str(root))
    lake.create()
    health = [
        _row("group_health", group_id=group, round=number, round_time=number * 1_000, ended=ended, findings=findings)
        for group, number, ended, findings in (
            ("a'\"`\\\n", 1, False, [["unassigned", 5_000, "x"]]),
            ("a'\"`\\\n", 2, False, []),
            ("gone", 2, True, []),
        )
    ]
    lake.append("group_health", health, "query", 0)
    return lake


def _append_drift(lake: DeltaLake) -> None:
    drifted = [["t", 0, "misplaced", "m", ["n", "o"], None]]
    drift = [
        _row("drift", group_id=group, round=1, round_time=1_000, decision=1, drifted_partitions=drifted)
        for group in ("a'\"`\\\n", "gone")
    ]
    lake.append("drift", drift, "query", 0)


def _spark_options(folder: Path) -> dict[str, str]:
    return {
        "spark.jars": ",".join(map(str, classpath("spark"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
        "spark.sql.session.timeZone": "UTC",
        # As in tests/dashboards/test_queries.py: small queries, each run once.
        "spark.ui.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def _run(command: list[str], folder: Path) -> str:
    environment = {"TZ": "UTC", "JAVA_HOME": str(find_java().resolve().parents[1]), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, cwd=folder, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    """Rows of any engine in one form, sorted."""
    return sorted(json.dumps(row, default=_as_text, sort_keys=True) for row in rows)


def _as_text(value: object) -> str:
    return str(value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value)


def test_a_second_session_finds_tables_and_views_with_the_rows_of_duckdb_and_polars(tmp_path: Path) -> None:
    lake = _lake(tmp_path / LAKE)
    folder = tmp_path / "spark"
    folder.mkdir()
    options = _spark_options(folder)
    defaults = folder / "spark.conf"
    defaults.write_text("".join(f"{name} {value}\n" for name, value in options.items()), encoding="utf-8")
    spark = [str(Path(pyspark.__file__).parent / "bin" / "spark-sql"), "--master", "local[1]"]

    # The first session is a user's, with what the command prints in a file.
    printed = _run(
        [str(Path(sys.executable).parent / "evenkeel"), "tables", "--ddl", "spark", "--lake", lake.root], folder
    )
    (folder / "ddl.sql").write_text(printed, encoding="utf-8")
    _run([*spark, "--properties-file", str(defaults), "-f", "ddl.sql"], folder)
    _append_drift(lake)
    # For Polars 2.1.0, which does not find the files in a folder whose name it would have to escape in a URL.
    copy = tmp_path / "copy"
    for name in ("group_health", "drift"):
        shutil.copytree(lake.path(name), copy / name)
    names = [f"evenkeel.{name}" for name in ("group_health", "drift", "group_health_current", "drift_current")]
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]"]
    (folder / "read.py").write_text(_READ, encoding="utf-8")
    told = _run([*submit, "--properties-file", str(defaults), "read.py", *names], folder)
    answer = json.loads(told.split("ANSWER", 1)[1])

    assert sorted(answer["names"]) == sorted([*(table.name for table in ALL_TABLES), *VIEWS])
    reader = LakeReader(lake.root)
    for name in ("group_health", "drift", "group_health_current", "drift_current"):
        assert _plain(answer["rows"][f"evenkeel.{name}"]) == _plain(reader.rows(f"SELECT * FROM {name}"))
    assert [row["round"] for row in answer["rows"]["evenkeel.group_health_current"]] == [2]
    assert [row["group_id"] for row in answer["rows"]["evenkeel.drift_current"]] == ["a'\"`\\\n"]

    for name in ("group_health", "drift"):
        rows = pl.read_delta(str(copy / name)).to_dicts()
        assert _plain(answer["rows"][f"evenkeel.{name}"]) == _plain(rows)

    health = table_named("group_health")
    comments = {column.name: column.comment for column in health.columns}
    assert comments.items() <= answer["comments"]["evenkeel.group_health"].items()
    assert answer["comments"]["evenkeel.group_health_current"] == comments
    assert health.properties.items() <= answer["properties"].items()
    assert (answer["kind"]["Type"], answer["kind"]["Comment"]) == ("EXTERNAL", health.comment)

    assert answer["schema_left"] == "default"
    # Registering has written nothing into the lake.
    assert {table.name: DeltaTable(lake.path(table.name)).version() for table in ALL_TABLES} == {
        table.name: int(table.name in {"group_health", "drift"}) for table in ALL_TABLES
    }
