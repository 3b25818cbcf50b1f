"""The Spark session of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from streaming.catalog import statements
from streaming.config import needs_delta, needs_s3a
from streaming.job.source import EvenkeelSource
from streaming.lifecycle import room_log
from streaming.spark import start_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = room_log(__name__)


def register(spark: SparkSession, lake: str, schema: str) -> bool:
    """Register the tables, which must be there, and their views; what is registered already stays.

    A catalog that refuses is a warning in the log: the tables are written all the same, and the next start tries again.

    Args:
        spark: A session with a catalog and Delta's jars; its current schema stays as it is.
        lake: Folder or URI.
        schema: Schema, with dots for one in a catalog.

    Returns:
        Whether everything is registered.
    """
    session = spark.newSession()
    try:
        for statement in statements("spark", lake, schema):
            session.sql(statement)
    except (PySparkException, Py4JJavaError) as error:
        _LOG.warning(
            "the tables are not registered in the schema %s (%s): check that Spark has a catalog and Delta's jars, as "
            "docs/catalogs.md says, and start the job again",
            schema,
            cause_of(str(error))[:300],
        )
        return False
    _LOG.info("the tables are registered in the schema %s", schema)
    return True


def cause_of(text: str) -> str:
    """The line of Spark's error that names the cause: errors that pyspark does not know begin with py4j's own line."""
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("An error occurred while calling")), "no reason given")


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
        with_delta=needs_delta(settings),
        with_s3a=needs_s3a(settings, checkpoint),
    )
    session.dataSource.register(EvenkeelSource)
    return session
