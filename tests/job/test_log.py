from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from py4j import java_gateway
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

from streaming.job.log import set_up_log
from streaming.job.run import _cause


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AccumulatorTCPServer]:
    for kind in (AccumulatorTCPServer, AccumulatorUnixServer):
        monkeypatch.setattr(kind, "handle_error", kind.handle_error)
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in ("kafka", "py4j")}
    filters = list(root.filters)
    set_up_log()
    # (Without its constructor, which would open a socket.)
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
