"""Delta's own library in a Spark session: loaded only where Spark writes tables, because a cold start pays for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.exceptions import SetupError
from streaming.jars import classpath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["delta_settings", "jars_for", "names_delta", "refuse_missing_delta"]

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"

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
    return _EXTENSION in text


def delta_settings() -> dict[str, str]:
    """Settings of a session that can write Delta tables.

    Under spark-submit they do not name the jars: its driver's class path is fixed before Python begins.

    Raises:
        SetupError: Delta's jars have not been downloaded.
    """
    defaults = Path(os.environ.get("SPARK_CONF_DIR", ".")) / "spark-defaults.conf"
    if names_delta(os.environ.get("PYSPARK_SUBMIT_ARGS", "")) or (
        defaults.is_file() and names_delta(defaults.read_text("utf-8"))
    ):
        return _OURS
    settings = {
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        settings["spark.jars"] = jars_for()
    return _OURS | settings


def jars_for() -> str:
    """Delta's jars as `spark.jars` and `spark-submit --jars` take them.

    Raises:
        SetupError: They have not been downloaded.
    """
    return ",".join(map(str, classpath("spark")))


def refuse_missing_delta(spark: SparkSession) -> None:
    """Refuse a session without Delta's classes: Spark itself starts without them, and its first write would fail.

    Raises:
        SetupError: There are none.
    """
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # noqa: SLF001 - pyspark has no face for it
    if loader.getResource(f"{_EXTENSION.replace('.', '/')}.class") is None:
        message = (
            "This Spark has no Delta, which job.writer needs: start the job with `evenkeel run` or `evenkeel submit`, "
            "which bring it, or give spark-submit its jars (docs/cluster.md)."
        )
        raise SetupError(message)
