"""The asset bundle for Databricks: its resources are of Databricks' own types, its alerts' SQL runs."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from streaming.config import load_fleet
from streaming.places import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parents[2]
_BUNDLE: dict[str, Any] = yaml.safe_load((_ROOT / "conf/deploy/databricks/databricks.yml").read_text(encoding="utf-8"))
_NOW = datetime.now(UTC)

# Reads resources by the types of the package databricks-bundles.
_READ = """
import json, sys
from databricks.bundles.alerts import Alert
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.jobs import Job

types = {"jobs": Job, "alerts": Alert, "dashboards": Dashboard}
for kind, resources in json.load(sys.stdin).items():
    for name, resource in resources.items():
        types[kind].from_dict(resource)
        print(kind, name)
"""


def _read(resources: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    python = cache_folder() / "deploy-checks" / "bin" / "python"
    if not python.exists():
        pytest.skip("databricks-bundles was not installed: python3 conf/setup.py helm")
    return subprocess.run(
        [python, "-Ic", _READ], input=json.dumps(resources), capture_output=True, text=True, check=False
    )


@pytest.mark.nightly
def test_resources_are_of_databricks_own_types() -> None:
    done = _read(_BUNDLE["resources"])
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5
    wrong = json.loads(json.dumps(_BUNDLE["resources"]))
    wrong["jobs"]["evenkeel"]["continuous"]["task_retry_mode"] = "SOMETIMES"
    assert _read(wrong).returncode != 0


def test_every_variable_that_is_used_is_declared() -> None:
    text = json.dumps({name: part for name, part in _BUNDLE.items() if name != "variables"})
    used = {part.partition("}")[0] for part in text.split("${var.")[1:]}
    assert used == set(_BUNDLE["variables"])


def test_the_job_reads_its_variables_as_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (cluster,) = _BUNDLE["resources"]["jobs"]["evenkeel"]["job_clusters"]
    for name, value in cluster["new_cluster"]["spark_env_vars"].items():
        monkeypatch.setenv(name, value)
    (settings,) = load_fleet()
    assert settings.cluster == "${var.cluster}"
    assert settings.kafka.sasl_password is not None


def test_the_alerts_ask_what_the_rules_ask() -> None:
    rules = yaml.safe_load((_ROOT / "conf" / "alerts.yaml").read_text(encoding="utf-8"))["rules"]
    when = {rule["name"]: rule.get("when") for rule in rules}
    asked = {name: alert["query_text"] for name, alert in _BUNDLE["resources"]["alerts"].items()}
    assert asked.keys() <= when.keys() | {"silence"}
    assert when["drift"] in asked["drift"]
    findings = when["unassigned"].removeprefix("has_any_finding(findings, [").removesuffix("])")
    assert f"f.finding IN ({findings})" in asked["unassigned"]


@pytest.mark.nightly
@pytest.mark.spark
def test_each_alert_counts_what_it_is_about(spark: SparkSession) -> None:
    _view(
        spark,
        "rounds",
        "cluster STRING, round_time TIMESTAMP, event_date DATE",
        [
            ("well", _ago(days=1), _day(days=1)),
            ("well", _ago(minutes=1), _day(minutes=1)),
            ("silent", _ago(minutes=20), _day(minutes=20)),
            ("no longer watched", _ago(days=20), _day(days=20)),
        ],
    )
    _view(
        spark,
        "drift_current",
        "group_id STRING, verdict STRING, basis STRING, strategy_mismatch BOOLEAN, source STRING",
        [
            ("wrong", "drifted", "declared", False, "log"),
            ("broken", "drifted", "invariant", True, "log"),
            ("another strategy", "drifted", "configured", True, "log"),
            ("by topic", "drifted", "declared", False, "rocketmq"),
            ("well", "clean", None, False, "log"),
        ],
    )
    _view(
        spark,
        "group_health_current",
        "group_id STRING, round_time TIMESTAMP, findings ARRAY<STRUCT<finding: STRING, since: TIMESTAMP>>",
        [
            ("unassigned", _ago(minutes=1), [("idle_members", _ago(days=1)), ("unassigned", _ago(minutes=5))]),
            ("just now", _ago(minutes=1), [("unassigned", _ago(minutes=1))]),
            ("well", _ago(minutes=1), []),
            ("another", _ago(minutes=1), [("idle_members", _ago(days=1))]),
        ],
    )
    counts = {}
    for name, alert in _BUNDLE["resources"]["alerts"].items():
        text = alert["query_text"].replace("${var.catalog}.${var.schema}.", "")
        row = spark.sql(text).first()
        assert row is not None
        counts[name] = row[alert["evaluation"]["source"]["name"]]
    for view in ("rounds", "drift_current", "group_health_current"):
        spark.catalog.dropTempView(view)  # other tests of this session have tables of these names
    assert counts == {"silence": 1, "drift": 2, "unassigned": 1}


def _view(spark: SparkSession, name: str, schema: str, rows: list[Any]) -> None:
    spark.createDataFrame(rows, schema).createOrReplaceTempView(name)


def _ago(**span: float) -> datetime:
    return _NOW - timedelta(**span)


def _day(**span: float) -> date:
    return _ago(**span).date()
