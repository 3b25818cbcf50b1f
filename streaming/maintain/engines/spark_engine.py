"""`evenkeel maintain --engine spark`: compaction of past days and vacuum by Delta's own commands, on a Spark cluster.

`OPTIMIZE` joins the files of a day in one commit that says that no row has changed (`dataChange` false), which is what
followers pass over, and which a job's appends do not disturb. It cannot sort by a whole key, as ours does, but
`ZORDER BY` one column lays the rows of a group together, which is what readers ask for. Retention, history and
checkpoints stay ours: only they know what the present is.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.maintain.engines.files_engine import FilesEngine
from streaming.maintain.exceptions import MaintenanceError
from streaming.maintain.table.plan import Limits
from streaming.spark import start_spark
from streaming.stores import on_object_store
from streaming.tables import DAY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.tables import Table

__all__ = ["SETTINGS", "SparkEngine", "spark_engine"]

_GROUP = "group_id"

SETTINGS = {
    # Rows of a file in the order that ZORDER has given them, and not as tasks happened to read them.
    "spark.databricks.io.skipping.mdc.sortWithinFiles": "true",
    # Counted before compression: row groups of some 150,000 rows of `lag`, about as many as in ours (`rewrite.py`). A
    # reader of one group opens one or two of them.
    "spark.hadoop.parquet.block.size": str(32 * 1024 * 1024),
    "spark.sql.parquet.compression.codec": "zstd",
}
"""Spark's settings for these commands."""


@contextmanager
def spark_engine(master: str | None, lake: str, limits: Limits | None = None) -> Iterator[SparkEngine | FilesEngine]:
    """Start a Spark session for the block.

    Args:
        lake: Folder or URI. On an object store Delta's commands are not used (`files_engine.py`).
        limits: Bounds of its files there; None for the defaults.
        master: Spark's master; None for this machine, or what the environment says (`MASTER`).

    Raises:
        SetupError: There is no Java, or Delta's jars have not been downloaded.
    """
    settings = dict(SETTINGS)
    if master is not None:
        os.environ["MASTER"] = master
        # Executors elsewhere connect to the driver.
        if not master.startswith("local"):
            settings |= {"spark.driver.host": socket.getfqdn(), "spark.driver.bindAddress": "0.0.0.0"}  # noqa: S104
    spark = start_spark("evenkeel maintain", settings, with_delta=not on_object_store(lake))
    try:
        yield FilesEngine(spark, limits) if on_object_store(lake) else SparkEngine(spark)
    finally:
        spark.stop()


class SparkEngine:
    """Delta's commands in one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def compact(self, table: Table, uri: str, day: date) -> None:
        """Join the files of one day of a partitioned table, the rows of a group together.

        Raises:
            MaintenanceError: Spark could not.
        """
        order = f" ZORDER BY ({_GROUP})" if _GROUP in table.key else ""
        self._run(uri, f"OPTIMIZE {{}} WHERE {DAY} = DATE'{day.isoformat()}'{order}")

    def vacuum(self, uri: str) -> None:
        """Delete the files that nobody may read any more, by the table's own property.

        Raises:
            MaintenanceError: Spark could not.
        """
        self._run(uri, "VACUUM {}")

    def _run(self, uri: str, command: str) -> None:
        place = uri.replace("`", "``")
        try:
            self._spark.sql(command.format(f"delta.`{place}`")).collect()
        except (PySparkException, Py4JError, OSError) as error:
            lines = (line.strip().removeprefix(": ") for line in str(error).splitlines())
            reason = next((line for line in lines if line and not line.startswith("An error occurred while")), "")
            message = (
                f"Spark could not maintain the table {uri} ({reason[:300] or type(error).__name__}): check that all "
                "nodes reach it at this place, and try again."
            )
            raise MaintenanceError(message) from error
