"""What the job says when its query ends: the JVM is gone, or lives, or a person must act first.

`tests/e2e/test_endings.py` kills a real JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import ERROR, Py4JJavaError, Py4JNetworkError, get_return_value
from pyspark.errors import PySparkRuntimeError, StreamingQueryException

from streaming.config import load_settings
from streaming.exceptions import SetupError
from streaming.groups.state import STATE_VERSION, GroupState, UnknownStateVersion, decode_state, encode_state
from streaming.job import run as job
from streaming.job.source.exceptions import AnotherSourceError


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


class _Session:
    def stop(self) -> None:
        """End, as a session does."""


def _failed(raised: Exception, lake: Path, monkeypatch: pytest.MonkeyPatch) -> SetupError:
    """What the job ends with when a worker of its query has raised an exception."""
    # (Spark 4.2.0 repeats a worker's traceback; shortened.)
    text = (
        "[STREAM_FAILED] Query [id = 5d] terminated with exception: Job aborted due to stage failure\n"
        "pyspark.errors.exceptions.base.PythonException: An exception was thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        '  File "/x/streaming/some.py", line 279, in some\n'
        f"{type(raised).__module__}.{type(raised).__name__}: {raised}\n"
        " SQLSTATE: XXKST"
    )

    def fails() -> None:
        raise StreamingQueryException(text)

    monkeypatch.setattr(job, "start_session", lambda *_: _Session())
    monkeypatch.setattr(job, "start_query", lambda *_, **__: _Query(fails))
    with pytest.raises(SetupError) as refused:
        job.run(load_settings(lake=str(lake)), available_now=True)
    return refused.value


def test_a_state_of_a_later_release_needs_a_person_who_is_told_the_two_ways_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownStateVersion) as unknown:
        decode_state(STATE_VERSION + 1, encode_state(GroupState())[1])
    assert str(_failed(unknown.value, tmp_path / "lake", monkeypatch)) == (
        f"the checkpoint holds state of version {STATE_VERSION + 1}, this release reads {STATE_VERSION}: "
        "run the release that wrote it, or run evenkeel run --rebuild-state once, which moves it aside and reads log "
        "and rounds again."
    )


def test_rounds_of_another_source_need_a_person_because_up_does_not_read_settings_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "The rounds of 'x' show groups from the source 'admin' now: set offsets_log back."
    assert str(_failed(AnotherSourceError(said), tmp_path / "lake", monkeypatch)) == said
