"""The ends of the job: its exit code, and the one sentence that it prints."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.job.run import QueryEndedError, run
from streaming.process import GuardedProcess
from tests.e2e.conftest import Recorded, in_this_session
from tests.e2e.recording import environment_of, settings_for
from tests.patience import unless_too_busy

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.turn(5)]

_ROOT = Path(__file__).resolve().parents[2]

_PATIENCE_S = 240.0


class DiskFullError(Exception):
    pass


Start = Callable[..., GuardedProcess]


@pytest.fixture
def start(recorded: Recorded, tmp_path: Path) -> Start:
    """Start the job on the recording as a process; its output goes to job.log."""
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=10)
    environment = [f"{name}={value}" for name, value in environment_of(settings, tmp_path).items()]

    def start(*arguments: str) -> GuardedProcess:
        command = ["env", *environment, sys.executable, *arguments]
        return GuardedProcess(command, log=tmp_path / "job.log", cwd=_ROOT)

    return start


def _wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while text not in log.read_text("utf-8"):
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(text, _PATIENCE_S)
        time.sleep(0.1)


@pytest.mark.xdist_group("recorded")
def test_a_query_that_fails_ends_the_job_with_its_cause_in_one_sentence(
    recorded: Recorded, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        message = "no space left on the device"
        raise DiskFullError(message)

    in_this_session(spark, monkeypatch)
    monkeypatch.setattr("streaming.job.run.batch_writer", lambda *_: no_space)
    settings = settings_for(recorded.recording.bootstrap, tmp_path / "lake", max_rounds=10)
    with pytest.raises(QueryEndedError) as ended:
        unless_too_busy(lambda: run(settings, available_now=True))
    cause = "the Spark query has ended: tests.e2e.test_endings.DiskFullError: no space left on the device"
    assert str(ended.value) == cause


@pytest.mark.nightly
def test_a_job_that_is_asked_to_stop_in_a_catch_up_ends_after_the_batch_in_progress(start: Start) -> None:
    job = start("-m", "streaming.job")
    _wait_for(job.log, "batch 0:")
    job.terminate()
    assert job.wait(_PATIENCE_S) == 0
    log = job.log.read_text("utf-8")
    assert "batch 3:" not in log  # of eight; one may have begun before the signal came, another before it was handled
    assert "Exception" not in log
