"""The archive of classes with which the job's JVM starts (`streaming/spark/prepared.py`), written once for each Spark.

A process of its own does it, beside the first job and with a lower priority, because a JVM that collects what it
loads starts in half as much time again. It runs the job's query over a source without rows, in a lake of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from streaming.config import Settings
from streaming.exceptions import SetupError
from streaming.job.batch import batch_writer
from streaming.job.checkpoint import PARTITIONS
from streaming.job.operator import OUTPUT_SCHEMA, STATE_SCHEMA, operator
from streaming.spark import class_archive, start_spark, use_prepared_home
from streaming.tables import DeltaLake

_PATIENCE_S = 240
"""To write the archive takes some seconds on an idle machine."""

_LOW_PRIORITY = 5
"""Behind the job, but not so low that a busy machine never gets there."""


def begin_to_write() -> None:
    """Begin to write the archive if there is none, and leave it to itself: it takes half a minute, once.

    Only where sessions start in the prepared home: no other one would use it, and under spark-submit a second session
    would join the JVM of the first.
    """
    try:
        archive = class_archive()
        if os.environ.get("SPARK_HOME") == str(archive.parent) and not archive.exists():
            subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    except (SetupError, OSError):
        pass  # the job starts without


class _Empty(DataSource):  # type: ignore[misc]  # pyspark is not followed by mypy here
    """A stream with one batch, without rows."""

    @classmethod
    def name(cls) -> str:
        return "empty"

    def schema(self) -> str:
        return "key string, payload binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - pyspark's signature
        return _EmptyReader()


class _EmptyReader(DataSourceStreamReader):  # type: ignore[misc]
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        return {"n": 0}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        return {"n": 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        return iter(())


def main() -> None:
    """Write the archive, unless another process does."""
    os.nice(_LOW_PRIORITY)
    archive = class_archive()
    folder = archive.parent / "writing"
    folder.mkdir(parents=True, exist_ok=True)
    with (archive.parent / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        shutil.rmtree(folder)  # what a run that was killed has left
        folder.mkdir()
        part, settings = folder / "classes.jsa", Settings(lake=str(folder / "lake"))
        use_prepared_home(writes_archive=part)
        spark = start_spark("evenkeel classes", {PARTITIONS: 2})
        spark.dataSource.register(_Empty)
        lake = DeltaLake(settings.lake)
        lake.create()
        query = (
            spark.readStream.format("empty")
            .load()
            .groupBy("key")
            .applyInPandasWithState(operator(settings), OUTPUT_SCHEMA, STATE_SCHEMA, "append", "NoTimeout")
            .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
            .foreachBatch(batch_writer(lake))
            .start()
        )
        query.processAllAvailable()
        query.stop()
        spark.stop()
        gateway = SparkContext._gateway  # noqa: SLF001 - the JVM ends, and writes, when nobody holds its input
        assert gateway is not None  # noqa: S101
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_PATIENCE_S)
        part.rename(archive)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
