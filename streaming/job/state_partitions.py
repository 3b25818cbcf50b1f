"""How many partitions the state has. The first start of a checkpoint fixes it; Spark ignores another number later."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from streaming.config import Settings
from streaming.job.checkpoint import REBUILD, standing_of
from streaming.lifecycle import room_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = room_log(__name__)

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
