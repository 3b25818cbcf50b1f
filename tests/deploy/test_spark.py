"""The manifests for Spark operators agree with the rest of the repository: settings, releases, image, secrets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / "conf" / "deploy" / "spark"
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_SITE = "/opt/evenkeel/lib/python3.11/site-packages"

# Settings of a job on one machine alone: its memory, and the loopback.
_OF_ONE_MACHINE = {"spark.driver.memory", "spark.driver.host", "spark.driver.bindAddress"}


def _spec(operator: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((_FOLDER / f"{operator}-operator.yaml").read_text(encoding="utf-8"))["spec"]
    return spec


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
