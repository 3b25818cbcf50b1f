"""The job's Spark session, which may start while Python still imports what the job needs: two seconds each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from streaming.config import Settings, needs_s3a
from streaming.job.data_source import EvenkeelSource
from streaming.spark import start_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARED = (
    *("pandas", "pyspark.worker", "pyspark.sql.worker.create_data_source", "pyspark.sql.worker.plan_data_source_read"),
    *("streaming.job.data_source", "streaming.job.operator", "streaming.job.source.planner"),
    "streaming.job.source.read",
)
"""What the Python processes of a job's session import (pandas: pyspark does, for an operator like ours)."""


def start_session(clusters: Iterable[Settings], name: str, checkpoint: str | None = None) -> SparkSession:
    """Start or join the session, with our source registered.

    Args:
        clusters: The settings of every cluster that it is for.
        name: Its name, as a cluster's master shows it.
        checkpoint: The place of this start's checkpoint; None for the settings' own.

    Raises:
        SetupError: There is no usable Java, or jars are needed and missing.
    """
    clusters, with_s3a = tuple(clusters), False
    for settings in clusters:
        # Before the JVM starts: the Python workers are its children, and inherit its environment.
        for section, kafka in settings.connections().items():
            kafka.export_secrets(section, settings.cluster)
        with_s3a = with_s3a or needs_s3a(settings, checkpoint)
    threads = None
    if len(clusters) > 1:
        # The tasks of a cluster that does not answer wait for it, and must not take the others' places.
        threads = max(os.cpu_count() or 1, sum(settings.job.tasks for settings in clusters))
    session = start_spark(name, {}, with_s3a=with_s3a, threads=threads, shared=SHARED)
    session.dataSource.register(EvenkeelSource)
    return session


def start_beside(clusters: Sequence[Settings], checkpoint: str | None = None) -> Callable[[], SparkSession]:
    """Start the session in a thread, for `streaming.job.fleet`; import that afterwards.

    Args:
        clusters: The settings of every cluster that it is for.
        checkpoint: The place of this start's checkpoint; None for the settings' own.

    Returns:
        Waits for the session. Raises what `start_session` raises.
    """
    names = ", ".join(settings.cluster for settings in clusters)
    beside = ThreadPoolExecutor(1, "spark")
    return beside.submit(start_session, clusters, f"evenkeel {names}", checkpoint).result
