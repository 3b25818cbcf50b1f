"""What the job says when Spark's JVM ends, and when it lives; `tests/e2e/test_endings.py` kills a real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import ERROR, Py4JJavaError, Py4JNetworkError, get_return_value
from pyspark.errors import PySparkRuntimeError

from streaming.config import load_settings
from streaming.job import run as job


class _Query:
    """A query whose first call fails."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        self._call()
        return False


def _run(call: Callable[[], None], moment: str, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> _Query:
        if moment == "while it starts":
            call()
        return _Query(call)

    monkeypatch.setattr(job, "start_session", lambda *_: object())
    monkeypatch.setattr(job, "start_query", started)
    job.run(load_settings(lake=str(lake)), available_now=True)


def _no_answer() -> None:
    # What py4j makes of a connection that ends during a call, as seen when a JVM was killed in the job's start.
    get_return_value(ERROR, None, "o75", "applyInPandasWithState")


def _no_connection() -> None:
    message = "An error occurred while trying to connect to the Java server (127.0.0.1:40001)"
    raise Py4JNetworkError(message)


def _refused() -> None:
    raise ConnectionRefusedError(111, "Connection refused")


def _gateway_exited() -> None:
    raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})


class _JavaError(Py4JJavaError):
    def __init__(self) -> None:
        Exception.__init__(self, "java.lang.IllegalStateException: no space")

    def __str__(self) -> str:
        return str(self.args[0])


def _java_raised() -> None:
    raise _JavaError


def _spark_refused() -> None:
    raise PySparkRuntimeError(errorClass="NO_ACTIVE_SESSION", messageParameters={})


def _disk_full() -> None:
    raise OSError(28, "no space left on device")


moments = pytest.mark.parametrize("moment", ["while it starts", "while it runs"])


@moments
@pytest.mark.parametrize("call", [_no_answer, _no_connection, _refused, _gateway_exited])
def test_a_jvm_that_gives_no_answer_ends_the_job_with_one_sentence(
    call: Callable[[], None], moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(job.QueryEndedError, match=r"Spark's JVM is gone .*: when restarted, the job continues"):
        _run(call, moment, tmp_path / "lake", monkeypatch)


@moments
@pytest.mark.parametrize("call", [_java_raised, _spark_refused, _disk_full])
def test_no_other_failure_is_called_the_end_of_the_jvm(
    call: Callable[[], None], moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((Py4JJavaError, PySparkRuntimeError, OSError), match=r"no space|No active Spark session"):
        _run(call, moment, tmp_path / "lake", monkeypatch)
