"""The one-sentence cause of a failed query; the texts are shortened from real ones."""

from __future__ import annotations

from streaming.job.run import _cause

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
