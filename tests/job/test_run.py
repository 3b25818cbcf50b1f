"""What the job says: when its query ends, in its log, and of its own maintenance.

`tests/e2e/test_endings.py` kills a real JVM.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j import java_gateway
from py4j.protocol import ERROR, Py4JJavaError, Py4JNetworkError, get_return_value
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkRuntimeError, StreamingQueryException

from streaming.config import Settings, load_settings
from streaming.exceptions import SetupError
from streaming.groups.state import STATE_VERSION, GroupState, UnknownStateVersion, decode_state, encode_state
from streaming.job import run as job
from streaming.job.log import set_up_log
from streaming.job.maintenance import JobMaintenance
from streaming.job.run import _cause
from streaming.job.source.exceptions import AnotherSourceError
from streaming.maintain import Done
from streaming.process import MAINTAINER, only_one
from streaming.tables import DeltaLake, LakeReader
from tests.maintain.build import Writer, files_of, new_lake, row


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
    raise Py4JNetworkError("An error occurred while trying to connect to the Java server (127.0.0.1:40001)")


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
    # Spark 4.2.0 repeats a worker's traceback; shortened.
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


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AccumulatorTCPServer]:
    for kind in (AccumulatorTCPServer, AccumulatorUnixServer):
        monkeypatch.setattr(kind, "handle_error", kind.handle_error)
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in ("kafka", "py4j")}
    filters = list(root.filters)
    set_up_log()
    # Without its constructor, which would open a socket.
    yield AccumulatorTCPServer.__new__(AccumulatorTCPServer)
    root.filters[:] = filters
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize(("failure", "told"), [(EOFError(), 0), (ConnectionResetError(), 0), (KeyError("id"), 1)])
def test_a_connection_of_sparks_that_broke_is_not_told_and_every_other_failure_is(
    server: AccumulatorTCPServer,
    failure: Exception,
    told: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    try:
        raise failure  # noqa: TRY301
    except Exception:  # noqa: BLE001 - as socketserver does
        server.handle_error(None, ("127.0.0.1", 1))  # type: ignore[arg-type]
    assert len(caplog.records) == told
    assert "Exception occurred" not in capfd.readouterr().err


@pytest.mark.usefixtures("server")
def test_what_py4j_says_on_the_root_logger_is_left_out_and_what_others_say_there_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = logging.getLogger()
    for path in (java_gateway.__file__, __file__):
        root.handle(logging.LogRecord("root", logging.WARNING, path, 1, "said", None, None))
    assert [record.pathname for record in caplog.records] == [__file__]


# The one-sentence cause of a failed query; the texts are shortened from real ones.


_PYTHON = """[STREAM_FAILED] Query [id = 5d] terminated with exception: [FOREACH_BATCH] An error
Traceback (most recent call last):
  File "/x/py4j/clientserver.py", line 641, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)

test.DiskFull: no space left on the device
 SQLSTATE: XXKST
"""

_KILLED_WORKER = """[STREAM_FAILED] Query [id = 5d] terminated with exception: [FOREACH_BATCH] An error
Traceback (most recent call last):
  File "/x/pyspark/sql/classic/dataframe.py", line 1930, in _collect_as_arrow
    jsocket_auth_server.getResult()
py4j.protocol.Py4JJavaError: An error occurred while calling o106.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:57)
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed):
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:1)
Caused by: java.io.IOException: Broken pipe
\t... 1 more
"""

_LATE_WORKER = """[STREAM_FAILED] Query [5d] terminated with exception: \
Python worker failed to connect back. SQLSTATE: XXKST
=== Streaming Query ===
Identifier: evenkeel-main [id = 5d]
Current Committed Offsets: {}

Current State: INITIALIZING
Thread State: RUNNABLE
"""


def test_an_exception_of_python_is_the_cause() -> None:
    assert _cause(_PYTHON) == "the Spark query has ended: test.DiskFull: no space left on the device"


def test_a_worker_that_was_killed_is_the_cause_and_not_the_bridge_that_tells_it() -> None:
    said = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed):"
    assert _cause(_KILLED_WORKER) == f"the Spark query has ended: {said}"


def test_where_spark_alone_has_failed_its_own_reason_is_the_cause() -> None:
    assert _cause(_LATE_WORKER) == "the Spark query has ended: Python worker failed to connect back."


def test_without_a_reason_it_says_so() -> None:
    assert _cause("") == "the Spark query has ended: no reason given"


MANY = 5


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with many files in two tables."""
    lake = new_lake(tmp_path_factory.mktemp("many"))
    writer = Writer(lake)
    for number in range(MANY):
        for table in ("lag", "members"):
            writer.append(table, row(table, 0, number, topic="t", partition=0))
    return Path(lake.root)


class Job:
    """A job on a lake, whose clock the test sets."""

    def __init__(self, lake: Path, **chosen: object) -> None:
        self.lake = DeltaLake(str(lake))
        self.now = 0.0
        self.stop = threading.Event()
        settings = Settings.model_validate({"cluster": "c", "lake": str(lake), "maintenance": chosen})
        self.maintenance = JobMaintenance(settings, clock=lambda: self.now)

    def work(self, now: float) -> None:
        self.now = now
        self.maintenance.work(self.stop)

    @property
    def files(self) -> dict[str, int]:
        return {name: count for name, count in files_of(self.lake).items() if name in {"lag", "members"}}


@pytest.fixture
def lake(many_files: Path, tmp_path: Path) -> Path:
    return shutil.copytree(many_files, tmp_path / "lake")


@pytest.fixture
def maintained(lake: Path) -> Job:
    return Job(lake)


@pytest.mark.turn(6)
def test_files_are_joined_and_no_row_changes(maintained: Job, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    maintained.work(13)
    assert maintained.files == {"lag": 1, "members": 1}
    assert LakeReader(maintained.lake.root).count("lag") == MANY
    said = [record.getMessage() for record in caplog.records if "joined" in record.getMessage()]
    assert len(said) == 2
    assert said[0].startswith("maintenance: lag ")


@pytest.mark.turn(6)
def test_a_stop_ends_the_work_after_the_piece_in_progress(maintained: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def line_of(_: Done) -> str:
        maintained.stop.set()
        return "a piece"

    monkeypatch.setattr("streaming.job.maintenance.line_of", line_of)
    maintained.work(12)
    assert sorted(maintained.files.values()) == [1, MANY]


@pytest.mark.turn(6)
@pytest.mark.nightly
def test_a_failure_is_a_warning_an_hour_and_the_job_goes_on(maintained: Job, caplog: pytest.LogCaptureFixture) -> None:
    for file in Path(maintained.lake.path("lag")).rglob("*.parquet"):
        file.unlink()
    for minute in range(1, 70):
        maintained.work(minute * 60)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("maintenance failed, and is tried again within the hour; the job goes on. The table ")
    assert "/lag could not be maintained" in said[0]


@pytest.mark.turn(6)
def test_an_error_nobody_expected_does_not_end_the_job(
    maintained: Job, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streaming.maintain.maintainer.days_to_join", lambda *_: 1 // 0)
    maintained.work(12)
    [unexpected] = (record.getMessage().partition("the job goes on. ")[2] for record in caplog.records)
    assert unexpected.startswith("ZeroDivisionError: ")


@pytest.mark.turn(6)
def test_only_one_compactor_works_on_a_lake_and_the_other_waits(
    maintained: Job, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with only_one(MAINTAINER, maintained.lake.root, None):
        maintained.work(12)
    assert maintained.files == {"lag": MANY, "members": MANY}
    assert "no maintenance by this job for 5 minutes: Another maintainer for the lake" in caplog.text
    maintained.work(330)
    assert maintained.files == {"lag": 1, "members": 1}


@pytest.mark.turn(6)
def test_a_job_that_shall_not_maintain_does_not(lake: Path) -> None:
    maintained = Job(lake, in_job=False)
    maintained.work(5_000)
    assert maintained.files == {"lag": MANY, "members": MANY}
