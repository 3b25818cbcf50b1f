"""The job's Spark session, which may start while Python still imports what the job needs: two seconds each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from streaming.config import Settings, checkpoint_of, needs_s3a
from streaming.job.data_source import EvenkeelSource
from streaming.spark import start_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(settings: Settings, name: str, checkpoint: str | None = None) -> SparkSession:
    """Start or join the session, with our source registered.

    Args:
        settings: All settings.
        name: Its name, as a cluster's master shows it.
        checkpoint: The place of this start's checkpoint; None for the settings' own.

    Raises:
        SetupError: There is no usable Java, or jars are needed and missing.
    """
    # Before the JVM starts: the Python workers are its children, and inherit its environment.
    for section, kafka in settings.connections().items():
        kafka.export_secrets(section, settings.cluster)
    session = start_spark(name, {}, with_s3a=needs_s3a(settings, checkpoint))
    session.dataSource.register(EvenkeelSource)
    return session


def start_beside(settings: Settings, checkpoint: str | None = None) -> Callable[[], SparkSession]:
    """Start the session in a thread, for `streaming.job.run.run`; import that afterwards.

    Args:
        settings: All settings.
        checkpoint: The place of this start's checkpoint; None for the settings' own.

    Returns:
        Waits for the session. Raises what `start_session` raises.
    """
    place = checkpoint_of(settings, checkpoint)
    beside = ThreadPoolExecutor(1, "spark")
    return beside.submit(start_session, settings, f"evenkeel {settings.cluster}", place).result
