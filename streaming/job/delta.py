"""Delta's own library in a Spark session: loaded only where Spark writes tables, because a cold start pays for it."""

from __future__ import annotations

from streaming.jars import classpath

__all__ = ["delta_settings"]


def delta_settings() -> dict[str, str]:
    """Spark's settings of a session that can write Delta tables.

    Raises:
        SetupError: Delta's jars have not been downloaded.
    """
    return {
        "spark.jars": ",".join(map(str, classpath("spark"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A table's log is some hundred files at most: fifty tasks (the default) to read it cost seconds.
        "spark.databricks.delta.snapshotPartitions": "1",
        # Spark's own default is INT96, which Arrow reads as nanoseconds: a time after 2262 would come back as another.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
