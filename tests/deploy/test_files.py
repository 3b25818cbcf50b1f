"""Files that deploy Evenkeel elsewhere: Databricks, systemd, Spark operators, and one version in all of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from streaming.config import load_fleet
from streaming.places import cache_folder
from streaming.up import JOB, PROBE, SERVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parents[2]
_BUNDLE: dict[str, Any] = yaml.safe_load((_ROOT / "conf/deploy/databricks/databricks.yml").read_text(encoding="utf-8"))

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
        pytest.skip("databricks-bundles was not installed: python -m tests.programs helm")
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
        counts[name] = row[alert["evaluation"]["source"]["name"]]
    for view in ("rounds", "drift_current", "group_health_current"):
        spark.catalog.dropTempView(view)  # other tests of this session have tables of these names
    assert counts == {"silence": 1, "drift": 2, "unassigned": 1}


def _view(spark: SparkSession, name: str, schema: str, rows: list[Any]) -> None:
    spark.createDataFrame(rows, schema).createOrReplaceTempView(name)


def _ago(**span: float) -> datetime:
    return datetime.now(UTC) - timedelta(**span)


def _day(**span: float) -> date:
    return _ago(**span).date()


_UNITS = Path(__file__).resolve().parents[2] / "conf" / "deploy" / "systemd"
_NAMES = ("evenkeel-up", "evenkeel-probe@orders", "evenkeel-job", "evenkeel-server")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root folder with the units where systemd looks for them, and with a program where they expect it."""
    folder = tmp_path_factory.mktemp("root")
    shutil.copytree(_UNITS, folder / "etc" / "systemd" / "system")
    program = folder / "opt" / "evenkeel" / "bin" / "evenkeel"
    program.parent.mkdir(parents=True)
    shutil.copy(sys.executable, program)
    return folder


def analyze(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", f"--root={root}", *arguments], capture_output=True, text=True, check=False
    )


with_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze: `python -m tests.programs systemd` installs it"
)


@with_systemd
@pytest.mark.parametrize("name", _NAMES)
def test_systemd_finds_no_mistake_in_a_unit(root: Path, name: str) -> None:
    done = analyze(root, "verify", "--man=no", "--recursive-errors=no", f"{name}.service")
    assert (done.returncode, done.stderr) == (0, "")


@with_systemd
@pytest.mark.parametrize("name", _NAMES)
def test_a_process_in_a_unit_can_do_little_by_systemd_s_own_measure(root: Path, name: str) -> None:
    # From 0 to 10; below 2 it says OK. A unit without any protection has 9.6.
    done = analyze(root, "security", "--offline=yes", "--threshold=20", f"{name}.service")
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_programs_of_up_may_end_one_after_the_other_before_systemd_kills_them() -> None:
    shared = (_UNITS / "evenkeel-.service.d" / "shared.conf").read_text("utf-8")
    settings = dict(re.findall(r"^(\w+)=(.*)$", shared, re.MULTILINE))
    assert int(settings["TimeoutStopSec"]) > sum(program.grace_s for program in (PROBE, JOB, SERVER))
    # Otherwise SIGTERM would also reach the JVM, in the middle of a batch.
    assert settings["KillMode"] == "mixed"


_FOLDER = _ROOT / "conf" / "deploy" / "spark"
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_SITE = "/opt/evenkeel/lib/python3.11/site-packages"

# Settings of a job on one machine alone: its memory, and the loopback.
_OF_ONE_MACHINE = {"spark.driver.memory", "spark.driver.host", "spark.driver.bindAddress"}


def _spec(operator: str) -> dict[str, Any]:
    return yaml.safe_load((_FOLDER / f"{operator}-operator.yaml").read_text(encoding="utf-8"))["spec"]


@pytest.fixture(params=["apache", "kubeflow"])
def operator(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_operator_is_given_our_defaults_of_spark(operator: str) -> None:
    lines = (_ROOT / "conf" / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    ours = dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    spec = _spec(operator)
    given = dict(spec["sparkConf"])
    if operator == "kubeflow":
        given["spark.driver.extraJavaOptions"] = spec["driver"]["javaOptions"]
    assert {name: given.get(name) for name in ours.keys() - _OF_ONE_MACHINE} == {
        name: value for name, value in ours.items() if name not in _OF_ONE_MACHINE
    }


def test_image_entry_point_and_releases_are_ours(operator: str) -> None:
    spec = _spec(operator)
    spark = next(one for one in _PROJECT["dependencies"] if one.startswith("pyspark==")).removeprefix("pyspark==")
    if operator == "apache":
        image, entry = spec["sparkConf"]["spark.kubernetes.container.image"], spec["pyFiles"]
        release = spec["runtimeVersions"]["sparkVersion"]
    else:
        image, entry, release = spec["image"], spec["mainApplicationFile"], spec["sparkVersion"]
    assert image == f"evenkeel-spark:{_PROJECT['version']}"
    assert release == spark
    assert entry.startswith(f"local://{_SITE}/")
    assert (_ROOT / entry.removeprefix(f"local://{_SITE}/")).is_file()
    steps = (_FOLDER / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\S+)", steps, re.MULTILINE) == [
        f"apache/spark:{spark}-scala",
        f"evenkeel:{_PROJECT['version']}",
    ]
    assert f"SPARK_HOME={_SITE}/pyspark" in steps


def test_a_job_that_ended_as_it_was_asked_to_is_started_again(operator: str) -> None:
    spec = _spec(operator)
    if operator == "apache":
        restart = spec["applicationTolerations"]["restartConfig"]
        assert restart["restartPolicy"] == "Always"
        # Attempts that worked are not counted for ever.
        assert 0 < restart["restartCounterResetMillis"] <= 3_600_000
    else:
        assert spec["restartPolicy"] == {"type": "Always"}


def test_executors_get_the_secrets_that_the_driver_gets(operator: str) -> None:
    spec = _spec(operator)
    if operator == "apache":
        (driver,) = spec["driverSpec"]["podTemplateSpec"]["spec"]["containers"]
        (executor,) = spec["executorSpec"]["podTemplateSpec"]["spec"]["containers"]
    else:
        driver, executor = spec["driver"], spec["executor"]
    secrets = [one for one in driver["env"] if "valueFrom" in one]
    assert secrets
    assert [one for one in executor["env"] if "valueFrom" in one] == secrets
    assert executor["envFrom"] == driver["envFrom"]


def test_chart_image_and_package_have_one_version() -> None:
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = yaml.safe_load((_ROOT / "conf/deploy/helm/evenkeel/Chart.yaml").read_text(encoding="utf-8"))
    values = yaml.safe_load((_ROOT / "conf/deploy/helm/evenkeel/values.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (version, version)
    # Empty: the chart takes its appVersion.
    assert values["image"]["tag"] == ""
