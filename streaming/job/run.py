"""The query of one cluster, from its start to its clean end. `fleet.py` runs one for each cluster."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkRuntimeError, StreamingQueryException

from streaming.config import Settings, checkpoint_of
from streaming.exceptions import EvenkeelError, SetupError
from streaming.groups import UnknownStateVersion
from streaming.job.batch import batch_writer
from streaming.job.checkpoint import (
    PARTITIONS,
    REBUILD,
    broken_by_spark,
    clear_torn_start,
    is_local,
    refuse_lost,
    state_partitions,
)
from streaming.job.operator import OUTPUT_SCHEMA, STATE_SCHEMA, operator
from streaming.job.progress import BatchLog
from streaming.job.rebuild.lake import RebuildingLake, incarnations_of
from streaming.job.rebuild.plan import Rebuild, begin, read_plan, write_gap, write_plan
from streaming.job.session import start_session
from streaming.job.source.exceptions import AnotherClusterError, AnotherSourceError
from streaming.job.source.settings import SourceSettings
from streaming.lifecycle import room_log
from streaming.spark import as_s3a
from streaming.tables import DeltaLake, Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


_LOG = room_log(__name__)

_GONE = "Spark's JVM is gone (killed, or out of memory?): when restarted, the job continues where it was"

# How often it checks whether it should stop: a stop waits at most this long, beside the batch itself.
_POLL_S = 0.2

# Hadoop's other way to a folder, which is Spark's default, starts a process (readlink) whenever it renames a file: a
# fifth of a small batch's processor time.
_THROUGH_FILE_SYSTEM = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)


class QueryEndedError(EvenkeelError):
    """The streaming query failed; its text names the cause in one sentence."""


class JvmGoneError(QueryEndedError):
    """Spark's JVM is gone, and with it every query: a process's supervisor starts everything again."""


def start_query(
    spark: SparkSession,
    settings: Settings,
    lake: Lake,
    *,
    checkpoint: str | None = None,
    plan: Rebuild | None = None,
    available_now: bool = False,
    done: Callable[[int, dict[str, int]], None] | None = None,
    hold: Path | None = None,
    clusters: int = 1,
) -> StreamingQuery:
    """Start the query.

    Args:
        spark: A session that has the source (`start_session`).
        settings: All settings.
        lake: A lake with its tables.
        checkpoint: Folder of the checkpoint; None for the settings' own (`checkpoint_of`).
        plan: The plan of the checkpoint's rebuild, done or not; None where there is none.
        available_now: Process what is there now, in batches, then end.
        done: Called after each batch with its number and the rows written per table.
        hold: No batch begins while this file exists.
        clusters: How many clusters share the session's cores.
    """
    known = incarnations_of(settings.lake, settings.cluster) if plan is not None and not plan.done else None
    start = plan.start if plan is not None else None
    place = checkpoint or checkpoint_of(settings)
    spark.conf.set(PARTITIONS, state_partitions(settings, spark, place, clusters))
    if is_local(place):
        spark.conf.set(*_THROUGH_FILE_SYSTEM)
    apply = operator(settings, known)
    stream = (
        spark.readStream.format("evenkeel")
        .option("settings", SourceSettings.of(settings, str(hold) if hold else None, start).option())
        .load()
        .groupBy("key")
        .applyInPandasWithState(apply, OUTPUT_SCHEMA, STATE_SCHEMA, "append", "NoTimeout")
    )
    writer = (
        stream.writeStream.queryName(f"evenkeel-{settings.cluster}")
        .option("checkpointLocation", as_s3a(place))
        .foreachBatch(batch_writer(lake, done, settings.job.writer))
    )
    if available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.job.trigger_ms} milliseconds").start()


def run(
    settings: Settings,
    *,
    available_now: bool = False,
    checkpoint: str | None = None,
    rebuild_state: bool = False,
    done: Callable[[int, dict[str, int]], None] | None = None,
    check: Callable[[], None] = lambda: None,
    session: Callable[[], SparkSession] | None = None,
    started: Callable[[], None] = lambda: None,
    stop: threading.Event | None = None,
    clusters: int = 1,
) -> None:
    """Run the query until it is asked to stop, between two batches.

    Args:
        settings: All settings.
        available_now: Process what is there now, then end.
        checkpoint: Folder or URI of the checkpoint; None for the settings' own (`checkpoint_of`).
        rebuild_state: Move the checkpoint aside, and read log and rounds again. A rebuild that is under way continues,
            with or without this.
        done: Called after each batch with its number and the rows written per table.
        check: Raises before each write when this job may not write any more (`only_one`).
        session: Gives a session of this query's own; None to start Spark, and stop it at the end.
        started: Called when the query is active.
        stop: Ends the query; None for one that ends by itself.
        clusters: How many clusters share the session's cores.

    Raises:
        JvmGoneError: Spark's JVM is gone: everything must start again.
        QueryEndedError: The query failed.
        SetupError: There is no usable Java; checkpoint or tables are lost or broken, belong to another Kafka cluster,
            follow another source of groups, or were written by a later release.
    """
    place = checkpoint_of(settings, checkpoint)
    plan = _plan_of(settings, place, rebuild_state=rebuild_state)
    clear_torn_start(place)
    with tempfile.TemporaryDirectory(prefix="evenkeel-") as folder:
        hold = Path(folder) / "hold"
        tables = DeltaLake(settings.lake, check=check)
        tables.create()
        lake: Lake = tables
        if plan is not None and not plan.done:
            write_gap(tables, settings.cluster, plan)
            lake = RebuildingLake(tables, settings.cluster, plan, lambda kept: write_plan(place, kept))
        batches = BatchLog(tables, settings.cluster)

        def written(number: int, rows: dict[str, int]) -> None:
            batches.done(number, rows)
            if done is not None:
                done(number, rows)

        try:
            spark = session() if session else start_session([settings], f"evenkeel {settings.cluster}")
            query = start_query(
                spark,
                settings,
                lake,
                checkpoint=place,
                plan=plan,
                available_now=available_now,
                done=written,
                hold=hold,
                clusters=clusters,
            )
            started()
            _LOG.info("watching cluster %s, tables in %s", settings.cluster, settings.lake)
            failure = _wait_for_the_end(query, stop or threading.Event(), hold, batches)
            batches.follow(query)
            batches.flush()
            if session is None:
                spark.stop()
        except Exception as error:
            if not _says_that_the_jvm_is_gone(error):
                raise
            raise broken_by_spark(place, str(error)) or JvmGoneError(_GONE) from error
        if failure is not None:
            refused = _refusal(str(failure)) or broken_by_spark(place, str(failure))
            if refused is not None:
                raise refused
            raise QueryEndedError(_cause(str(failure)))


def _says_that_the_jvm_is_gone(error: Exception) -> bool:
    """Whether a call got no answer from the JVM. An exception of Java's is an answer: the JVM lives."""
    if isinstance(error, PySparkRuntimeError):
        return bool(error.getCondition() == "JAVA_GATEWAY_EXITED")
    return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


def _plan_of(settings: Settings, checkpoint: str, *, rebuild_state: bool) -> Rebuild | None:
    """The plan of the checkpoint's rebuild, also of one that is done; begins one when asked to."""
    try:
        plan = read_plan(checkpoint)
        if (plan is not None and not plan.done) or not rebuild_state:
            refuse_lost(settings, checkpoint, is_rebuilt=plan is not None)
    except SetupError:
        if not rebuild_state:
            raise
        return begin(settings, checkpoint)
    if plan is not None and not plan.done:
        _LOG.info("rebuilding the state: continuing where the last run ended")
        return plan
    if rebuild_state:
        return begin(settings, checkpoint)
    return plan


def _wait_for_the_end(query: StreamingQuery, stop: threading.Event, hold: Path, batches: BatchLog) -> Exception | None:
    """Wait until the query ends, or stop it when asked to; returns why it failed, None if it did not."""
    try:
        while query.isActive and not stop.is_set():
            query.awaitTermination(_POLL_S)
            batches.follow(query)
    except StreamingQueryException as failure:
        return cast("Exception", failure)
    failed: Exception | None = query.exception()
    if failed is None:
        # In a catch-up each batch begins right after the last: without this the stop would wait for all of them.
        hold.parent.mkdir(exist_ok=True)  # an empty folder among temporary files may be gone after some days
        hold.touch()
        _stop_between_batches(query)
    return failed


def _stop_between_batches(query: StreamingQuery) -> None:
    # A stop in the middle of a batch is safe (the batch is run again), but Spark 4.2.0 then fails with a
    # StackOverflowError in the log, raised by the regular expression `StreamExecution.PROXY_ERROR`.
    waiting = threading.Event()
    while query.isActive and query.status["isTriggerActive"]:
        waiting.wait(0.05)
    query.stop()


# The line after the indented frames of a Python traceback: "module.Class: message". Not every class ends in Error.
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(\S.*)")


# A person must act first: a restart would end the same way. That includes another source of groups: `up` passes on the
# settings that it read at its start, so a setting that is put right needs a new start of `up`.
_REFUSED = re.compile(
    rf"({AnotherClusterError.__name__}|{AnotherSourceError.__name__}|{UnknownStateVersion.__name__}): (\S.*)"
)

# The cause of Spark's own exceptions where no Python raised: a worker that was killed, a task that was lost.
_CAUSED = re.compile(r"^Caused by: (org\.apache\.spark\.\S+: \S.*)", re.MULTILINE)

# Spark's own first line; what follows it is the query's offsets and the state of its thread.
_TERMINATED = re.compile(r"terminated with exception: (\S.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


def _refusal(text: str) -> SetupError | None:
    """The error for a failure of the query after which a person must act first; None for any other."""
    found = _REFUSED.search(text)
    if found is None:
        return None
    kind, said = found.groups()
    return SetupError(f"{said}, or {REBUILD}." if kind == UnknownStateVersion.__name__ else said)


def _cause(text: str) -> str:
    """The line of a failure that names its cause: Spark wraps a Python error into some thirty lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The bridge's own exception only says that Java has raised one.
    raised = [line for line in _RAISED.findall(text) if not line.startswith("py4j.")]
    named = (
        raised
        or _CAUSED.findall(text)
        or [line for line in lines if "Error: " in line or "Exception: " in line]
        or _TERMINATED.findall(text)
    )
    return f"the Spark query has ended: {(named or lines or ['no reason given'])[-1][:500]}"
