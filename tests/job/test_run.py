"""What the job says when Spark's JVM ends before the query runs; `tests/e2e/test_endings.py` kills a real one later."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import ERROR, Py4JJavaError, Py4JNetworkError, get_return_value

from streaming.config import load_settings
from streaming.job import run as job


def _no_answer() -> None:
    # What py4j makes of a connection that ends during a call, as seen when a JVM was killed in the job's start.
    get_return_value(ERROR, None, "o75", "applyInPandasWithState")


def _no_connection() -> None:
    message = "An error occurred while trying to connect to the Java server (127.0.0.1:40001)"
    raise Py4JNetworkError(message)


def _refused() -> None:
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("call", [_no_answer, _no_connection, _refused])
def test_a_jvm_that_is_killed_before_the_query_runs_ends_the_job_with_one_sentence(
    call: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "start_session", lambda *_: object())
    monkeypatch.setattr(job, "start_query", lambda *_, **__: call())  # type: ignore[operator]
    with pytest.raises(job.QueryEndedError, match=r"Spark's JVM is gone .*: when restarted, the job continues"):
        job.run(load_settings(lake=str(tmp_path / "lake")))


class _Answered(Py4JJavaError):
    def __init__(self) -> None:
        Exception.__init__(self, "java.lang.IllegalStateException: no space")

    def __str__(self) -> str:
        return str(self.args[0])


def test_an_exception_of_a_jvm_that_lives_is_not_called_the_end_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered(*_: object, **__: object) -> None:
        raise _Answered

    monkeypatch.setattr(job, "start_session", lambda *_: object())
    monkeypatch.setattr(job, "start_query", answered)
    with pytest.raises(Py4JJavaError, match="no space"):
        job.run(load_settings(lake=str(tmp_path / "lake")))
