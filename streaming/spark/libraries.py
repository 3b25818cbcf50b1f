"""What a Spark session loads beside Spark's own jars: Delta, and Hadoop's S3A, each only where it is needed."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.exceptions import SetupError
from streaming.jars import classpath
from streaming.spark.s3a import S3A_CLASS, brings_s3a, s3a_settings, without_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DELTA_CLASS", "configured", "delta_settings", "jars_for", "names_delta", "refuse_missing", "settings_for"]

DELTA_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
"""The class that shows that a session has Delta's jars, and by which a configuration loads them."""

# Set even where the platform brings its own Delta.
_OURS = {
    # A table's log has some hundred files at most: fifty tasks (the default) to read it cost seconds.
    "spark.databricks.delta.snapshotPartitions": "1",
    # A file beside each commit with sums over the table, which only Delta's own readers use, and which maintenance by
    # delta-rs would never delete.
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # Spark's default is INT96, which Arrow reads as nanoseconds: a time after 2262 would come back as another one.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def names_delta(text: str) -> bool:
    """Whether a configuration loads Delta by itself, as a platform's own does."""
    return DELTA_CLASS in text


def delta_settings(configuration: str) -> dict[str, str]:
    """Settings of a session that can write Delta tables.

    Args:
        configuration: Text of the session's own configuration.
    """
    if names_delta(configuration):
        return _OURS
    return _OURS | {
        "spark.sql.extensions": DELTA_CLASS,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def settings_for(*, with_delta: bool, with_s3a: bool) -> dict[str, str]:
    """Settings of a session in this process.

    Under spark-submit they do not name the jars: its driver's class path is fixed before Python begins.

    Args:
        with_delta: It can write Delta tables.
        with_s3a: It reaches S3.

    Raises:
        SetupError: Jars have not been downloaded.
    """
    configuration = configured(os.environ.get("PYSPARK_SUBMIT_ARGS", ""), os.environ.get("SPARK_CONF_DIR", "."))
    settings = without_keys(configuration)
    if with_delta:
        settings |= delta_settings(configuration)
    if with_s3a:
        settings |= s3a_settings(configuration)
    if "PYSPARK_GATEWAY_PORT" not in os.environ and (
        jars := jars_for(configuration, with_delta=with_delta, with_s3a=with_s3a)
    ):
        settings["spark.jars"] = jars
    return settings


def jars_for(configuration: str, *, with_delta: bool, with_s3a: bool) -> str:
    """The jars as `spark.jars` and `spark-submit --jars` take them, without what the platform brings; may be empty.

    Args:
        configuration: Text of the session's own configuration, by which a platform names what it brings.
        with_delta: It can write Delta tables.
        with_s3a: It reaches S3.

    Raises:
        SetupError: They have not been downloaded.
    """
    jars: list[Path] = []
    if with_delta and not names_delta(configuration):
        jars += classpath("spark")
    if with_s3a and not brings_s3a(configuration):
        jars += classpath("s3a")
    return ",".join(map(str, jars))


def refuse_missing(spark: SparkSession, *, with_delta: bool, with_s3a: bool) -> None:
    """Refuse a session without the classes that it needs: Spark starts without them, and fails when it uses them.

    Raises:
        SetupError: Some are missing.
    """
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # noqa: SLF001 - pyspark has no face for it
    for is_needed, name, library, who in (
        (with_delta, DELTA_CLASS, "Delta", "job.writer"),
        (with_s3a, S3A_CLASS, "S3A", "a checkpoint or a catalog on S3"),
    ):
        if is_needed and loader.getResource(f"{name.replace('.', '/')}.class") is None:
            message = (
                f"This Spark has no {library}, which {who} needs: start the job with `evenkeel run` or `evenkeel "
                "submit`, which bring it, or give spark-submit its jars (docs/cluster.md)."
            )
            raise SetupError(message)


def configured(arguments: str, folder: str) -> str:
    """What the user or the platform has configured, as text: one setting a line, without comments.

    Args:
        arguments: Arguments of spark-submit.
        folder: Folder with `spark-defaults.conf`, if it has one.
    """
    defaults = Path(folder) / "spark-defaults.conf"
    text = defaults.read_text("utf-8") if defaults.is_file() else ""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join([*shlex.split(arguments), *lines])
