"""The Spark session of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streaming.config import needs_s3a
from streaming.job.source import EvenkeelSource
from streaming.spark import start_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.config import Settings

__all__ = ["start_session"]


def start_session(settings: Settings, name: str, checkpoint: str | None = None) -> SparkSession:
    """Start or join the session, with our source registered.

    Args:
        settings: All settings.
        name: Its name, as a cluster's master shows it.
        checkpoint: The place of this start's checkpoint; None for the settings' own.

    Raises:
        SetupError: There is no usable Java, or jars are needed and missing.
    """
    session = start_spark(
        name,
        {"spark.sql.shuffle.partitions": settings.job.shuffle_partitions},
        with_s3a=needs_s3a(settings, checkpoint),
    )
    session.dataSource.register(EvenkeelSource)
    return session
