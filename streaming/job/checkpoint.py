"""The checkpoint as far as we look into it: whether it is whole, how far its query has read, whether the lake fits it.

Layout of Spark 4.2: `metadata`, `offsets/<batch>` (written before a batch) and `commits/<batch>` (after it), each with
a line "v1" and then JSON; `state/`. An empty or cut file is what a full disk or a power cut leaves, and Spark's own
message often names no file ("Unexpected end-of-input").

Its first start fixes how many partitions the state has; Spark ignores another number later.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pa_fs

from streaming.config import Settings
from streaming.exceptions import EvenkeelError, SetupError
from streaming.lifecycle import room_log
from streaming.stores import cause_of, on_s3
from streaming.tables import TABLES, KnownRows, file_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = room_log(__name__)

REBUILD = "run evenkeel run --rebuild-state once, which moves it aside and reads log and rounds again"
"""What helps against a lost or broken checkpoint."""

PARTITIONS = "spark.sql.shuffle.partitions"
"""Spark's name for the number of state partitions."""

_SPARKS_PARTITIONS = 200

# What Spark says of a checkpoint whose files are gone or broken; a restart would end the same way.
_BROKEN = re.compile(
    r"CANNOT_LOAD_STATE_STORE\.\w*|CANNOT_READ_STREAMING_STATE_FILE|STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"
    r"|STREAMING_CHECKPOINT_MISSING_METADATA_FILE|STATE_STORE_\w*(?:CHECKSUM|CORRUPT)\w*|MALFORMED_LOG_FILE"
    r"|Failed to read log file \S+"
)


# What S3A says when a store is away, overloaded, or refuses the credentials: then no file need be broken.
_STORE_IS_AWAY = re.compile(
    r"SdkClientException|ApiCallTimeoutException|AWS(?:ServiceThrottled|Status500|ClientIO|NoResponse|ApiCallTimeout)"
    r"|NoAuthWithAWSException|CredentialInitializationException|Status Code: (?:40[0139]|429|5\d\d)"
)

# Names of files before they are renamed, and of Hadoop's sums of them on a disk.
_TEMPORARY = re.compile(r"\.+\d+\..+\.tmp(\.crc)?")


def is_local(checkpoint: str) -> bool:
    """Whether it is a folder of this machine."""
    return "://" not in checkpoint


class CheckpointUnreachableError(EvenkeelError):
    """The store of a checkpoint did not answer: without a look at it, rows could be left out or written twice."""


def refuse_unanswered(checkpoint: str, error: Exception) -> None:
    """Refuse to go on without a look at a checkpoint on S3, which we reach as Spark does; others (HDFS) only Spark may.

    Raises:
        CheckpointUnreachableError: It is on S3.
    """
    if on_s3(checkpoint):
        message = f"The checkpoint {checkpoint} cannot be read: {cause_of(error)}."
        raise CheckpointUnreachableError(message) from None


def is_empty(checkpoint: str) -> bool:
    """Whether no batch was ever planned in it. False where we cannot look: Spark reaches stores that we do not (HDFS).

    Spark writes a batch's offsets before the batch begins, so a crash in the very first one loses nothing.

    Raises:
        CheckpointUnreachableError: It is on S3, which does not answer.
    """
    try:
        return not _numbers(checkpoint, "offsets")
    except (OSError, ValueError) as error:
        refuse_unanswered(checkpoint, error)
        _LOG.warning("cannot check whether the checkpoint %s exists: %s", checkpoint, cause_of(error))
        return False


def clear_torn_start(checkpoint: str) -> None:
    """Delete what a start has left that was killed while it planned the very first batch.

    Spark writes a file under another name, and renames it. If the first offsets are not there but such a file is, Spark
    4.2.0 refuses the checkpoint at every start (`STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY`).

    Raises:
        CheckpointUnreachableError: It is on S3, which does not answer.
    """
    if not is_empty(checkpoint):
        return
    folder = file_system(checkpoint)
    try:
        for found in folder.get_file_info(pa_fs.FileSelector("offsets", allow_not_found=True)):
            if _TEMPORARY.fullmatch(found.base_name):
                folder.delete_file(found.path)
                _LOG.info("deleted %s/%s, which a start that was killed has left", checkpoint, found.path)
    except OSError as error:
        refuse_unanswered(checkpoint, error)
        raise


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """How far a checkpoint says that its query is.

    Attributes:
        query: Id of the query, by which the tables know its batches.
        planned: Its newest batch, done or not.
        partitions: Number of its state partitions, which its first start has fixed.
        offsets: The source's offsets at the end of the newest batch that is done; None before the first, or where that
            batch is not named any more.
    """

    query: str
    planned: int
    partitions: int
    offsets: dict[str, Any] | None


def standing_of(checkpoint: str) -> CheckpointProgress | None:
    """Read the files that every start needs; None where no batch was ever planned, or where we cannot look.

    Raises:
        SetupError: One is missing, empty or cut.
        CheckpointUnreachableError: It is on S3, which does not answer.
    """
    try:
        offsets, commits = _numbers(checkpoint, "offsets"), _numbers(checkpoint, "commits")
    except (OSError, ValueError) as error:
        refuse_unanswered(checkpoint, error)
        return None  # a store that Spark reaches and we do not
    if not offsets and not commits:
        return None
    planned, done = max(offsets, default=-1), max(commits, default=-1)
    if done > planned:
        raise _broken(checkpoint, f"offsets/{done} is gone")
    query: str = _lines(checkpoint, "metadata")[0].get("id", "")
    configured = _lines(checkpoint, f"offsets/{planned}")[0].get("conf", {})
    partitions = int(configured.get(PARTITIONS, _SPARKS_PARTITIONS))
    if done < 0:
        return CheckpointProgress(query, planned, partitions, None)
    _lines(checkpoint, f"commits/{done}")
    at_end = _lines(checkpoint, f"offsets/{done}")[-1] if done in offsets else None
    return CheckpointProgress(query, planned, partitions, at_end)


def broken_by_spark(checkpoint: str, text: str) -> SetupError | None:
    """The error for what Spark said, if it said that the checkpoint is broken, and not that its store is away."""
    found = _BROKEN.search(text)
    if found is None or (on_s3(checkpoint) and _STORE_IS_AWAY.search(text)):
        return None
    return _broken(checkpoint, f"Spark says {found[0]}")


def _broken(checkpoint: str, why: str) -> SetupError:
    message = f"The checkpoint {checkpoint} is broken ({why}): restore it, or {REBUILD}."
    return SetupError(message)


def _numbers(checkpoint: str, folder: str) -> list[int]:
    found = file_system(checkpoint).get_file_info(pa_fs.FileSelector(folder, allow_not_found=True))
    return [int(info.base_name) for info in found if info.base_name.isdecimal()]


def _lines(checkpoint: str, name: str) -> list[Any]:
    """The JSON values of a file.

    Raises:
        SetupError: It is not as Spark writes it.
    """
    try:
        with file_system(checkpoint).open_input_stream(name) as stream:
            text: str = stream.read().decode()
        # A source that has nothing yet has "-" for its offset.
        values = [None if line == "-" else json.loads(line) for line in text.splitlines() if not line.startswith("v")]
    except FileNotFoundError:
        raise _broken(checkpoint, f"{name} is gone") from None
    except ValueError:
        raise _broken(checkpoint, f"{name} is cut") from None
    except OSError as error:
        refuse_unanswered(checkpoint, error)
        raise
    if not values:
        raise _broken(checkpoint, f"{name} is empty")
    return values


def refuse_lost(settings: Settings, checkpoint: str, *, is_rebuilt: bool) -> None:
    """Refuse to start where checkpoint and tables do not belong together, because one of them was lost.

    A lake with rows and no checkpoint: a query that starts over would write days of rows a second time. A checkpoint
    without the tables it has written: the query would continue, and nobody would see that the past is gone.

    Args:
        settings: All settings.
        checkpoint: Folder or URI of the checkpoint.
        is_rebuilt: It has the plan of a rebuild.

    Raises:
        SetupError: One of them is lost, or a file of the checkpoint is broken.
    """
    tables = [KnownRows(settings.lake, table, settings.cluster) for table in TABLES]
    if not is_rebuilt and is_empty(checkpoint):
        first = next((known.table.name for known in tables if known.any()), None)
        if first is None:
            return
        message = (
            f"The checkpoint {checkpoint} is lost: it is empty, but the table {first} in {settings.lake} holds rows of "
            f"the cluster {settings.cluster}, which a new one would write a second time. Restore the checkpoint, "
            "or run evenkeel run --rebuild-state once, which writes only what the tables do not have."
        )
        raise SetupError(message)
    standing = standing_of(checkpoint)
    if not is_rebuilt and standing is None:
        return
    lost, rounds = _lost(tables, standing), tables[-1].table.name
    if lost:
        message = (
            f"The lake {settings.lake} has lost what the checkpoint {checkpoint} says was written to it: "
            f"{', '.join(lost)}. Restore it, or run evenkeel run --rebuild-state once, which writes again what Kafka "
            "still holds."
        )
        raise SetupError(message)
    if standing is not None and (written := tables[-1].written_by(standing.query)) > standing.planned:
        message = (
            f"The checkpoint {checkpoint} is older than the lake {settings.lake}: it ends with batch "
            f"{standing.planned}, and {rounds} has batch {written} of its query, so rows would be left out. Restore "
            "the newest one, or run evenkeel run --rebuild-state once."
        )
        raise SetupError(message)


def _lost(tables: list[KnownRows], standing: CheckpointProgress | None) -> list[str]:
    """What the tables should have and do not."""
    gone = [known.table.name for known in tables if not known.is_there]
    if gone or standing is None or standing.offsets is None:
        return gone
    # `rounds` is written last: with this round everything up to it is there.
    done, newest = standing.offsets.get("round", -1), tables[-1].newest_round()
    if done < 0 or (newest is not None and newest >= done):
        return []
    return [f"the rounds up to {done}" if newest is None else f"the rounds after {newest}, up to {done}"]


_MOST = 8
"""Each partition costs every batch processor time, with groups in it or not, and eight cores advance 100,000 groups in
two seconds."""

_SETTLED_S = 3.0
"""The executors of a cluster have all registered when their number has stood still for so long."""


def state_partitions(settings: Settings, spark: SparkSession, checkpoint: str, clusters: int = 1) -> int:
    """The checkpoint's own number; before its first batch the setting, or the share of a cluster in the cores, 1 to 8.

    Logs when setting and checkpoint differ, with what changes it.

    Args:
        settings: The cluster's.
        spark: The session.
        checkpoint: Its place.
        clusters: How many clusters share the cores.

    Raises:
        SetupError: A file of the checkpoint is broken.
        CheckpointUnreachableError: It is on S3, which does not answer.
    """
    chosen, standing = settings.job.shuffle_partitions, standing_of(checkpoint)
    if standing is None:
        return chosen or min(max(1, _cores(spark) // clusters), _MOST)
    if chosen not in {None, standing.partitions}:
        _LOG.warning(
            "job.shuffle_partitions is %d, but the checkpoint %s began with %d and keeps them: to change that, %s.",
            chosen,
            checkpoint,
            standing.partitions,
            REBUILD,
        )
    return standing.partitions


def _cores(spark: SparkSession) -> int:
    """Cores of this machine, or of all executors of a cluster."""
    context = spark.sparkContext
    if context.master.startswith("local"):
        # There may be more threads than cores.
        return int(context._jvm.java.lang.Runtime.getRuntime().availableProcessors())  # noqa: SLF001 - no face for it
    cores = int(context.defaultParallelism)
    spark.range(1).count()  # waits for the first executor
    before = 0
    while cores != before:
        time.sleep(_SETTLED_S)
        before, cores = cores, int(context.defaultParallelism)
    return cores
