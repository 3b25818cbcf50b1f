"""Delta's own commands for a table: by delta-rs in this process, or by delta-spark where one machine is too small.

Only one compactor may be at work on a lake (`streaming.process.MAINTAINER`): delta-rs also commits after a version that
has replaced the same files, which would double their rows. Appends beside it do no harm.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Protocol

from deltalake import WriterProperties
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.exceptions import SetupError
from streaming.maintain.pieces import TARGET_BYTES, MaintenanceError
from streaming.stores import on_object_store
from streaming.tables import DAY, OpenedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Rows of a row group: a reader of an hour opens a few of them. 131,072 rows of `lag` are about a megabyte.
WRITER = WriterProperties(compression="ZSTD", max_row_group_size=131_072)

_SETTINGS = {
    "spark.sql.parquet.compression.codec": "zstd",
    # VACUUM lists folders with 10,000 tasks otherwise.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": 8,
    "spark.sql.shuffle.partitions": 8,
}


class Engine(Protocol):
    """Compacts and vacuums. What it raises is turned into a `MaintenanceError`."""

    def compact(self, opened: OpenedTable, day: date | None) -> None:
        """Join the small files of a day; with None those of rows without one."""

    def vacuum(self, opened: OpenedTable) -> None:
        """Delete files that no reader needs any more, by the table's own property."""


class DeltaRs:
    """delta-rs, in this process: one task, so that it takes one core and 250 MB beside a job."""

    def compact(self, opened: OpenedTable, day: date | None) -> None:
        """As `Engine`."""
        filters = [(DAY, "=", "" if day is None else day.isoformat())] if DAY in opened.table.partition_by else None
        opened.delta.optimize.compact(
            partition_filters=filters, target_size=TARGET_BYTES, max_concurrent_tasks=1, writer_properties=WRITER
        )

    def vacuum(self, opened: OpenedTable) -> None:
        """As `Engine`."""
        opened.delta.vacuum(dry_run=False, full=True)


class DeltaSpark:
    """Delta's commands in one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def compact(self, opened: OpenedTable, day: date | None) -> None:
        """As `Engine`."""
        value = "IS NULL" if day is None else f"= DATE'{day.isoformat()}'"
        self._run(opened, f"OPTIMIZE {{}} WHERE {DAY} {value}" if DAY in opened.table.partition_by else "OPTIMIZE {}")

    def vacuum(self, opened: OpenedTable) -> None:
        """As `Engine`."""
        self._run(opened, "VACUUM {}")

    def _run(self, opened: OpenedTable, command: str) -> None:
        place = opened.uri.replace("`", "``")
        try:
            self._spark.sql(command.format(f"delta.`{place}`")).collect()
        except (PySparkException, Py4JError) as error:
            lines = (line.strip().removeprefix(": ") for line in str(error).splitlines())
            reason = next((line for line in lines if line and not line.startswith("An error occurred while")), "")
            message = (
                f"Spark could not maintain the table {opened.uri} ({reason[:300] or type(error).__name__}): check that "
                "all nodes reach it at this place, and try again."
            )
            raise MaintenanceError(message) from error


@contextmanager
def delta_spark(master: str | None, lake: str) -> Iterator[DeltaSpark]:
    """Start a Spark session for the block.

    Args:
        master: Spark's master; None for this machine, or what the environment says (`MASTER`).
        lake: Folder or URI.

    Raises:
        SetupError: The lake is on an object store, there is no Java, or Delta's jars have not been downloaded.
    """
    if on_object_store(lake):
        message = (
            f"Spark cannot maintain {lake}: on an object store its commits would overwrite those of a running job, "
            "because no log store of Delta 4.4 makes a put conditional. Maintain it without --engine."
        )
        raise SetupError(message)
    from streaming.spark import start_spark  # noqa: PLC0415 - it takes a second to import

    settings: dict[str, object] = dict(_SETTINGS)
    if master is not None:
        os.environ["MASTER"] = master
        # Executors elsewhere connect to the driver.
        if not master.startswith("local"):
            settings |= {"spark.driver.host": socket.getfqdn(), "spark.driver.bindAddress": "0.0.0.0"}  # noqa: S104
    spark = start_spark("evenkeel maintain", settings, with_delta=True)
    try:
        yield DeltaSpark(spark)
    finally:
        spark.stop()
