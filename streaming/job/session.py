"""The Spark session of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streaming.job.source import EvenkeelSource
from streaming.spark import start_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.config import JobSettings

__all__ = ["start_session"]


def start_session(job: JobSettings, name: str) -> SparkSession:
    """Start or join the session, with our source registered.

    Raises:
        SetupError: There is no usable Java, or Delta's jars are needed and missing.
    """
    settings = {"spark.sql.shuffle.partitions": job.shuffle_partitions}
    session = start_spark(name, settings, with_delta=job.writer != "delta-rs")
    session.dataSource.register(EvenkeelSource)
    return session
