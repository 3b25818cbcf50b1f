"""`python -m tests.job.s3_program FOLDER LAKE`: what Spark does with a lake on S3, in one session with Delta and S3A.

LAKE is the URI of an empty prefix. Each part fills a prefix of its own; `test_s3.py` reads the answers. The session
writes an event log, in which no credentials may be.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import streaming.job.batch
import streaming.job.spark_writer
from streaming.config import JobSettings, Settings
from streaming.config import Writer as Choice
from streaming.job.batch import batch_writer
from streaming.job.session import register, start_session
from streaming.tables import ALL_TABLES, DeltaLake
from tests.job.spark_writer_program import ALL, QUERY, SEVERAL, TWO, RefusedError, TornLake, packed, play, rows_of
from tests.maintain.build import row


class Program:
    """The session, and the parts."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.root = folder, root
        (folder / "events").mkdir()
        settings = Settings(lake=root, job=JobSettings(writer="spark", shuffle_partitions=2, catalog_schema="evenkeel"))
        events = {"enabled": "true", "compress": "false", "dir": (folder / "events").as_uri()}
        options = [f"--conf spark.eventLog.{name}={value}" for name, value in events.items()]
        os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*options, os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")])
        self.spark: SparkSession = start_session(settings, "s3")
        # Small queries, each run once: compiling any of them costs more than running it.
        self.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        self.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        self.spark.sparkContext.setLocalProperty("sql.streaming.queryId", QUERY)

    def frame(self, number: int, names: Any) -> DataFrame:
        table = pa.table({"rows": pa.array(packed(rows_of(number, names)), pa.binary())})
        return self.spark.createDataFrame(table).repartition(2)

    def lake(self, name: str) -> DeltaLake:
        lake = DeltaLake(f"{self.root}/{name}")
        lake.create(ALL_TABLES)
        return lake

    def write(self, lake: DeltaLake, writer: Choice, number: int, names: Any) -> dict[str, int]:
        written: dict[str, int] = {}
        write = batch_writer(lake, lambda _, rows: written.update(rows), None, writer)
        write(self.frame(number, names), number)
        return written

    def each_writer(self) -> dict[str, Any]:
        for writer in ("delta-rs", "spark"):
            lake = self.lake(writer)
            written = self.write(lake, writer, 1, ALL)
        return {
            "written": written,
            "again": self.write(lake, "spark", 1, TWO),
            "older": self.write(lake, "spark", 0, TWO),
        }

    def switched_within_a_batch(self) -> dict[str, Any]:
        answers = {}
        for first, second in (("delta-rs", "spark"), ("spark", "delta-rs")):
            name = f"{first}-then-{second}"
            self.lake(name)
            with suppress(RefusedError):
                self.write(TornLake(f"{self.root}/{name}"), first, 0, SEVERAL)  # type: ignore[arg-type]
            answers[name] = self.write(self.lake(name), second, 0, SEVERAL)  # type: ignore[arg-type]
        return answers

    def a_large_batch(self) -> dict[str, Any]:
        """One task has more rows than go into a file, and `auto` collects a table."""
        lake = self.lake("large")
        streaming.job.batch._COLLECTED_BYTES = 0
        streaming.job.batch._COLLECTED_ROWS = 30
        streaming.job.spark_writer._FILE_ROWS = 20
        written = self.write(lake, "auto", 0, ("lag", *TWO))
        files = {name: len(DeltaTable(lake.path(name)).file_uris()) for name in TWO}
        parts = {
            name: sum("part-" in uri and ".zstd." in uri for uri in DeltaTable(lake.path(name)).file_uris())
            for name in TWO
        }
        return {"written": written, "files": files, "by_tasks": parts}

    def in_a_catalog(self) -> dict[str, Any]:
        lake = self.lake("catalog")
        lake.append("lag", [row("lag", 0, 1, group_id="é ' %", topic="t", partition=0)], QUERY, 0)
        registered = register(self.spark, lake.root, "evenkeel")
        before = DeltaTable(lake.path("lag")).version()
        refused = ""
        try:
            self.spark.sql("INSERT INTO evenkeel.lag SELECT * FROM evenkeel.lag")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            refused = str(error)
        lake.append("lag", [row("lag", 0, 2, group_id="g", topic="t", partition=0)], QUERY, 1)
        return {
            "registered": registered,
            "groups": sorted(r[0] for r in self.spark.sql("SELECT group_id FROM evenkeel.lag_current").collect()),
            "refused": refused,
            "versions": DeltaTable(lake.path("lag")).version() - before,
        }

    def what_is_configured(self) -> dict[str, Any]:
        context = self.spark.sparkContext
        return {
            "spark": dict(context.getConf().getAll()),
            "hadoop": _entries(context._jsc.hadoopConfiguration()),  # type: ignore[attr-defined]
        }


def _entries(hadoop: Any) -> dict[str, str]:
    found, entries = {}, hadoop.iterator()
    while entries.hasNext():
        entry = entries.next()
        found[entry.getKey()] = entry.getValue()
    return found


def main(folder: Path, root: str) -> None:
    program = Program(folder, root)
    parts = (
        program.each_writer,
        program.switched_within_a_batch,
        program.in_a_catalog,
        program.maintained_by_spark,
        program.what_is_configured,
        program.a_large_batch,
    )
    play(parts, folder)
    program.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
