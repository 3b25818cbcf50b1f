"""Delta's own library in a Spark session: loaded only where Spark writes tables, because a cold start pays for it."""

from __future__ import annotations

__all__ = ["DELTA_CLASS", "delta_settings", "names_delta"]

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
