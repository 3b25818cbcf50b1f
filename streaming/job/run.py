"""The job: one streaming query per monitored cluster, from its start to its clean end."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow.fs as pa_fs
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkRuntimeError, StreamingQueryException

from streaming.config import Settings, checkpoint_of
from streaming.exceptions import EvenkeelError, SetupError
from streaming.job.batch import batch_writer
from streaming.job.catalog import register
from streaming.job.maintenance import JobMaintenance
from streaming.job.operator import OUTPUT_SCHEMA, STATE_SCHEMA, operator
from streaming.job.session import start_session
from streaming.job.source import AnotherClusterError, SourceSettings
from streaming.lifecycle import room_log, stop_signals
from streaming.stores import cause_of
from streaming.tables import TABLES, DeltaLake, file_system, has_rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from streaming.maintain import Pace

_LOG = room_log(__name__)

_GONE = "Spark's JVM is gone (killed, or out of memory?): when restarted, the job continues where it was"

# How often the main loop checks whether it should stop: a Ctrl-C waits at most this long, beside the batch itself and a
# piece of maintenance.
_POLL_S = 0.2


class QueryEndedError(EvenkeelError):
    """The streaming query failed; its text names the cause in one sentence."""


def start_query(
    spark: SparkSession,
    settings: Settings,
    lake: DeltaLake,
    *,
    checkpoint: str | None = None,
    available_now: bool = False,
    done: Callable[[int, dict[str, int]], None] | None = None,
    pace: Pace | None = None,
    hold: Path | None = None,
) -> StreamingQuery:
    """Start the query.

    Args:
        spark: A session that has the source. Secrets must be in files, or in the environment since before its JVM
            started (`KafkaSettings.export_secrets`).
        settings: All settings.
        lake: A lake with its tables.
        checkpoint: Folder of the checkpoint; None for the settings' own (`checkpoint_of`).
        available_now: Process what is there now, in batches, then end.
        done: Called after each batch with its number and the rows written per table.
        pace: Is told when batches begin and end.
        hold: No batch begins while this file exists.
    """
    apply = operator(_without_secrets(settings))
    stream = (
        spark.readStream.format("evenkeel")
        .option("settings", SourceSettings.of(settings, str(hold) if hold else None).option())
        .load()
        .groupBy("key")
        .applyInPandasWithState(apply, OUTPUT_SCHEMA, STATE_SCHEMA, "append", "NoTimeout")
    )
    writer = (
        stream.writeStream.queryName(f"evenkeel-{settings.cluster}")
        .option("checkpointLocation", checkpoint or checkpoint_of(settings))
        .foreachBatch(batch_writer(lake, done, pace))
    )
    if available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.job.trigger_ms} milliseconds").start()


def _without_secrets(settings: Settings) -> Settings:
    # The operator's settings travel to the executors in a closure, which Spark may write to a disk.
    update = {name: type(getattr(settings, name))() for name in ("kafka", "alerts") if hasattr(settings, name)}
    return settings.model_copy(update={**update, "bus": None})


def run(
    settings: Settings,
    *,
    available_now: bool = False,
    checkpoint: str | None = None,
    done: Callable[[int, dict[str, int]], None] | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Run the job until it is asked to stop (SIGINT, SIGTERM), between two batches.

    Raises:
        QueryEndedError: The query failed. It is not restarted here but by the process's supervisor, because a
            half-dead JVM is worse than a new one.
        SetupError: There is no usable Java; the checkpoint is lost, or belongs to another Kafka cluster.
    """
    refuse_lost_checkpoint(settings, checkpoint or checkpoint_of(settings))
    maintenance = JobMaintenance(settings)
    # Before the JVM starts: the Python workers are its children, and inherit its environment.
    for section, kafka in settings.connections().items():
        kafka.export_secrets(section)
    with stop_signals() as stop, tempfile.TemporaryDirectory(prefix="evenkeel-") as folder:
        hold = Path(folder) / "hold"
        lake = DeltaLake(settings.lake, check=check)
        lake.create()
        try:
            spark = start_session(settings.job, f"evenkeel {settings.cluster}")
            if settings.job.catalog_schema is not None:
                register(spark, settings.lake, settings.job.catalog_schema)
            query = start_query(
                spark,
                settings,
                lake,
                checkpoint=checkpoint,
                available_now=available_now,
                done=done,
                pace=maintenance.pace,
                hold=hold,
            )
        except (Py4JNetworkError, PySparkRuntimeError, ConnectionError) as error:
            raise QueryEndedError(_GONE) from error
        _LOG.info("watching cluster %s, tables in %s", settings.cluster, settings.lake)
        try:
            failure = _wait_for_the_end(query, stop, hold, None if available_now else maintenance)
            spark.stop()
        except (Py4JError, OSError) as error:
            raise QueryEndedError(_GONE) from error
        if failure is not None:
            refused = _REFUSED.search(str(failure))
            if refused:
                raise SetupError(refused[1])
            raise QueryEndedError(_cause(str(failure)))


def _wait_for_the_end(
    query: StreamingQuery, stop: threading.Event, hold: Path, maintenance: JobMaintenance | None
) -> Exception | None:
    """Wait until the query ends, or stop it when asked to; returns why it failed, None if it did not."""
    try:
        while query.isActive and not stop.is_set():
            query.awaitTermination(_POLL_S)
            if maintenance is not None:
                maintenance.work(stop)
    except StreamingQueryException as failure:
        return cast("Exception", failure)
    failed: Exception | None = query.exception()
    if failed is None:
        # In a catch-up each batch begins right after the last: without this the stop would wait for all of them.
        hold.parent.mkdir(exist_ok=True)  # (an empty folder among temporary files may be gone after some days)
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


# A person must act first: a restart would end the same way.
_REFUSED = re.compile(rf"{AnotherClusterError.__name__}: (\S.*)")

# The cause of Spark's own exceptions where no Python raised: a worker that was killed, a task that was lost.
_CAUSED = re.compile(r"^Caused by: (org\.apache\.spark\.\S+: \S.*)", re.MULTILINE)

# Spark's own first line; what follows it is the query's offsets and the state of its thread.
_TERMINATED = re.compile(r"terminated with exception: (\S.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)


def _cause(text: str) -> str:
    """The line of a failure that names its cause: Spark wraps a Python error into some thirty lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # (The bridge's own exception only says that Java has raised one.)
    raised = [line for line in _RAISED.findall(text) if not line.startswith("py4j.")]
    named = (
        raised
        or _CAUSED.findall(text)
        or [line for line in lines if "Error: " in line or "Exception: " in line]
        or _TERMINATED.findall(text)
    )
    return f"the Spark query has ended: {(named or lines or ['no reason given'])[-1][:500]}"


def refuse_lost_checkpoint(settings: Settings, checkpoint: str) -> None:
    """Refuse to start a new checkpoint beside rows of the cluster: a lake with rows and no checkpoint has lost its own.

    A query that starts over would read everything again, and write days of rows a second time.

    Args:
        settings: All settings.
        checkpoint: Folder or URI of the checkpoint.

    Raises:
        SetupError: The checkpoint has no batch, and a table of the job holds rows of the cluster.
    """
    # Spark writes a batch's offsets before the batch begins, so a crash in the very first one loses nothing.
    if _has_offsets(checkpoint):
        return
    table = next((t.name for t in TABLES if has_rows_of(settings.lake, t, settings.cluster)), None)
    if table is None:
        return
    message = (
        f"The checkpoint {checkpoint} is lost: it is empty, but the table {table} in {settings.lake} holds rows of the "
        f"cluster {settings.cluster}, which a new checkpoint would write a second time. Restore the checkpoint, or "
        "give the job a lake of its own (EVENKEEL_LAKE); docs/operations.md says how to keep the old history."
    )
    raise SetupError(message)


def _has_offsets(checkpoint: str) -> bool:
    offsets = pa_fs.FileSelector("offsets", allow_not_found=True)
    try:
        found = file_system(checkpoint).get_file_info(offsets)
    except (OSError, ValueError) as error:
        # Spark reaches stores that we do not (HDFS): we must not refuse what we cannot check.
        _LOG.warning("cannot check whether the checkpoint %s exists: %s", checkpoint, cause_of(error))
        return True
    return any(info.base_name.isdecimal() for info in found)
