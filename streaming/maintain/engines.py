"""Delta's own commands for a table: by delta-rs in this process, or by delta-spark where one machine is too small.

Only one compactor may be at work on a lake (`streaming.process.MAINTAINER`): delta-rs also commits after a version that
has replaced the same files, which would double their rows. Appends beside it do no harm.

The first half is pure: what is due in a table, by its files and the day.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
from deltalake import WriterProperties
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.exceptions import EvenkeelError, SetupError
from streaming.stores import cause_of, on_object_store
from streaming.tables import DAY, DataFile, OpenedTable, advice
from streaming.times import DAY_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET_BYTES: Final = 100 * 1024 * 1024
"""Size of the files that compaction makes: a day of a thousand groups is one, and a reader of it opens one."""

# Files below this are joined with others. Half of what they become: larger ones would be written again for little.
_SMALL_BYTES = TARGET_BYTES // 2


class MaintenanceError(EvenkeelError):
    """A piece of maintenance could not be done; the table is as it was."""


@contextmanager
def one_sentence(uri: str) -> Iterator[None]:
    """Turn what delta-rs, Arrow and DuckDB raise into one sentence."""
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException, duckdb.Error) as error:
        otherwise = "check that its folder is whole and writable and its disk not full, and try again"
        message = f"The table {uri} could not be maintained ({cause_of(error)}): {advice(error, otherwise)}."
        raise MaintenanceError(message) from error


@dataclass(frozen=True, slots=True)
class Done:
    """One piece of work that was done, at most one commit, or that failed.

    Attributes:
        table: Name of the table; where computing failed, "history" or "advice".
        what: compaction, retention, history, advice or upkeep (vacuum, checkpoint, cleaning of the log).
        day: Its day; with retention the first one that is kept; None for upkeep.
        hour: Its hour, where it is one of history.
        files: Files read or deleted.
        rows: Rows written or deleted.
        size: Bytes of files deleted by vacuum.
        seconds: How long it took.
        failure: Why it failed, in one sentence; empty for what was done.
    """

    table: str
    what: str
    day: date | None = None
    hour: datetime | None = None
    files: int = 0
    rows: int = 0
    size: int = 0
    seconds: float = 0.0
    failure: str = ""


def today_of(now: int, newest: date | None) -> date:
    """The day from which rows are aged, UTC: the newest in the lake, or the clock's if that is earlier.

    So neither a machine whose clock is ahead nor a broker whose clock is deletes history, and a lake to which nobody
    writes any more stays as it is.

    Args:
        now: The clock, ms since the epoch.
        newest: Newest day of a round in the lake; None when there is none.
    """
    clock = date(1970, 1, 1) + timedelta(days=now // DAY_MS)
    if newest is None:
        return clock
    return min(clock, newest)


def days_to_join(files: Iterable[DataFile]) -> dict[date | None, list[DataFile]]:
    """Small files by day, the newest day first, of days that have several; None is the day of rows without one."""
    small: dict[date | None, list[DataFile]] = {}
    for file in files:
        if file.size < _SMALL_BYTES:
            small.setdefault(file.day, []).append(file)
    newest_first = sorted(small, key=lambda day: day or date.min, reverse=True)
    return {day: small[day] for day in newest_first if len(small[day]) > 1}


def expired(files: Iterable[DataFile], first_kept: date) -> list[DataFile]:
    """Files of days before the first one that is kept."""
    return [file for file in files if file.day is not None and file.day < first_kept]


# Rows of a row group: a reader of an hour opens a few of them. 131,072 rows of `lag` are about a megabyte.
WRITER = WriterProperties(compression="ZSTD", max_row_group_size=131_072)

_SETTINGS = {
    "spark.sql.parquet.compression.codec": "zstd",
    # VACUUM lists folders with 10,000 tasks otherwise.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": 8,
    "spark.sql.shuffle.partitions": 8,
}


class DeltaRs:
    """delta-rs, in this process: one task, so that it takes one core and 250 MB beside a job."""

    def compact(self, opened: OpenedTable, day: date | None) -> None:
        """Join the small files of a day; with None those of rows without one."""
        filters = [(DAY, "=", "" if day is None else day.isoformat())] if DAY in opened.table.partition_by else None
        opened.delta.optimize.compact(
            partition_filters=filters, target_size=TARGET_BYTES, max_concurrent_tasks=1, writer_properties=WRITER
        )

    def vacuum(self, opened: OpenedTable) -> None:
        """Delete files that no reader needs any more, by the table's own property."""
        opened.delta.vacuum(dry_run=False, full=True)


class DeltaSpark:
    """Delta's commands in one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def compact(self, opened: OpenedTable, day: date | None) -> None:
        """As `DeltaRs`."""
        value = "IS NULL" if day is None else f"= DATE'{day.isoformat()}'"
        self._run(opened, f"OPTIMIZE {{}} WHERE {DAY} {value}" if DAY in opened.table.partition_by else "OPTIMIZE {}")

    def vacuum(self, opened: OpenedTable) -> None:
        """As `DeltaRs`."""
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


Engine = DeltaRs | DeltaSpark


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
