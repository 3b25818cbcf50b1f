from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.job.class_archive import begin_to_write
from streaming.spark import class_archive, use_prepared_home

_OURS = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that says nothing of Spark, and an empty cache; what a test adds to it is taken back."""
    for name in (*_OURS, "PYSPARK_GATEWAY_PORT", "MASTER"):
        monkeypatch.setenv(name, "")  # (monkeypatch takes back only what it has seen)
        monkeypatch.delenv(name)
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def begun(environment: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Commands of processes that a test begins; none of them runs."""
    class_archive()  # asks Java for its release, once in a process
    commands: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    return commands


@pytest.mark.parametrize("chosen", [*_OURS, "PYSPARK_GATEWAY_PORT", "MASTER"])
def test_what_a_user_or_a_platform_sets_of_spark_stays_as_it_is(
    environment: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    monkeypatch.setenv(chosen, "theirs")
    before = dict(os.environ)
    use_prepared_home()
    assert dict(os.environ) == before
    assert list(environment.iterdir()) == []


def test_without_a_place_to_write_spark_starts_as_it_is_installed(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment / "file").touch()
    monkeypatch.setenv("EVENKEEL_CACHE", str(environment / "file"))
    before = dict(os.environ)
    use_prepared_home()
    assert dict(os.environ) == before


@pytest.mark.parametrize("home", [None, "theirs"])
def test_no_archive_is_written_for_a_session_that_would_not_use_it(
    environment: Path, begun: list[object], monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    if home is not None:
        monkeypatch.setenv("SPARK_HOME", home)
    begin_to_write()
    assert (begun, list(environment.iterdir())) == ([], [])


@pytest.mark.usefixtures("environment")
def test_the_archive_of_the_prepared_home_is_written_if_it_is_missing(begun: list[object]) -> None:
    use_prepared_home()
    begin_to_write()
    assert len(begun) == 1
    class_archive().touch()
    begin_to_write()
    assert len(begun) == 1


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_written_archive_is_one_that_the_jvm_of_a_session_takes(environment: Path) -> None:
    subprocess.run([sys.executable, "-m", "streaming.job.class_archive"], check=True, timeout=600)
    use_prepared_home()
    loaded = environment / "loaded"
    # (Without an archive that it can take, such a JVM does not start.)
    os.environ["SPARK_SUBMIT_OPTS"] += f" -Xshare:on -Xlog:class+load:file={loaded}"
    subprocess.run([Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit", "--version"], check=True, timeout=120)
    assert "org.apache.spark.deploy.SparkSubmit source: shared objects file (top)" in loaded.read_text("utf-8")
