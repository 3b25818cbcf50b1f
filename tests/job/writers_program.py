"""`python -m tests.job.writers_program FOLDER LAKE`: lakes written by both writers, in one Spark session.

LAKE is a folder, or the URI of an empty prefix. Each part fills a lake of its own there; `test_writers.py` reads them.
A part that fails prints why, and the tests that need it fail. The session writes an event log, in which no credentials
may be.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import streaming.job.batch
from streaming.config import JobSettings, Settings, Writer
from streaming.groups import Rows
from streaming.job.batch import batch_writer
from streaming.job.run import start_session
from streaming.stores import on_object_store
from streaming.tables import TABLES, DeltaLake, DeltaLogTail, table_named
from tests.job.hostile_rows import hostile_rows

QUERY = "the-query"

TWO = ("lag", "gaps")
SEVERAL = (*TWO, "rounds")
ALL = tuple(table.name for table in TABLES)
"""Each write costs Spark a second, so that only one part writes all tables."""

_PACK = msgspec.msgpack.Encoder().encode


class RefusedError(Exception):
    """Stands for a process that dies between two tables."""


class TornLake(DeltaLake):
    """Refuses its second table."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._asked: set[str] = set()

    def append(self, table: str, *more: Any) -> int:
        self._ask(table)
        return super().append(table, *more)

    def is_written(self, table: str, *more: Any) -> bool:
        self._ask(table)
        return super().is_written(table, *more)

    def _ask(self, table: str) -> None:
        self._asked.add(table)
        if len(self._asked) > 1:
            raise RefusedError


def rows_of(number: int, names: Sequence[str] = ALL) -> list[dict[str, list[list[Any]]]]:
    """What an operator gives for one batch: hostile rows by table, for each of three keys.

    Args:
        number: Number of the batch.
        names: The tables; one that is named twice has twice as many rows.
    """
    return [
        {
            name: [row for time in range(times) for row in hostile_rows(table_named(name), f"{number}-{key}-{time}")]
            for name, times in Counter(names).items()
        }
        for key in range(3)
    ]


def packed(rows: list[dict[str, list[list[Any]]]]) -> list[bytes]:
    return [_PACK([of_key.get(name, []) for name in Rows.__struct_fields__]) for of_key in rows]


class Program:
    """The session, and the parts."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.root = folder, root
        (folder / "events").mkdir()
        events = {"enabled": "true", "compress": "false", "dir": (folder / "events").as_uri()}
        options = [f"--conf spark.eventLog.{name}={value}" for name, value in events.items()]
        os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*options, os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")])
        # (S3A, as for a checkpoint there: no key of the environment may reach the configuration.)
        checkpoint = f"{root}/checkpoint" if on_object_store(root) else None
        settings = Settings(lake=root, job=JobSettings(writer="spark", shuffle_partitions=2))
        self.spark: SparkSession = start_session(settings, "writers", checkpoint)
        # Small queries, each run once: compiling any of them costs more than running it.
        self.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        self.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        self.spark.sparkContext.setLocalProperty("sql.streaming.queryId", QUERY)

    def frame(self, number: int, names: Sequence[str]) -> DataFrame:
        table = pa.table({"rows": pa.array(packed(rows_of(number, names)), pa.binary())})
        return self.spark.createDataFrame(table).repartition(2)

    def lake(self, name: str) -> DeltaLake:
        lake = DeltaLake(f"{self.root}/{name}")
        lake.create()
        return lake

    def write(self, lake: DeltaLake, writer: Writer, number: int, names: Sequence[str]) -> dict[str, int]:
        written: dict[str, int] = {}
        write = batch_writer(lake, lambda _, rows: written.update(rows), writer)
        write(self.frame(number, names), number)
        return written

    def each_writer(self) -> dict[str, Any]:
        for writer in ("delta-rs", "spark"):
            lake = self.lake(writer)
            written = self.write(lake, writer, 1, ALL)  # type: ignore[arg-type]
        tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
        first = tail.read_new_files()
        self.write(lake, "spark", 2, ["lag"])
        second = tail.read_new_files()
        return {
            "written": written,
            "again": self.write(lake, "spark", 2, TWO[:1]),
            "older": self.write(lake, "spark", 1, TWO[:1]),
            "tail": [
                first.is_snapshot,
                second.is_snapshot,
                [[str(file.day), file.clusters, str(file.newest)] for file in second.files],
            ],
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

    def a_stateful_query(self) -> dict[str, Any]:
        """A stream with an operator that says how often it was called."""
        source, calls = self.folder / "source", self.folder / "calls"
        source.mkdir()
        payloads = {f"key-{key}": one for key, one in enumerate(packed(rows_of(0, ["lag"])))}

        def apply(key: tuple[str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
            for _ in frames:
                pass
            with calls.open("a") as file:
                file.write(f"{key[0]}\n")
            state.update((1,))
            yield pd.DataFrame({"rows": [payloads[key[0]]]})

        for number in range(2):
            part = source / f".{number}"
            part.write_text("".join(json.dumps({"key": key}) + "\n" for key in payloads), "utf-8")
            part.rename(source / f"{number}.json")
        query = (
            self.spark.readStream.schema("key string")
            .option("maxFilesPerTrigger", 1)
            .json(str(source))
            .groupBy("key")
            .applyInPandasWithState(apply, "rows binary", "version int", "append", "NoTimeout")
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .foreachBatch(batch_writer(self.lake("stream"), writer="spark"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        cache = self.spark._jsparkSession.sharedState().cacheManager()  # type: ignore[attr-defined]
        return {"calls": sorted(calls.read_text().split()), "nothing_kept": cache.isEmpty()}

    def a_large_batch(self) -> dict[str, Any]:
        """One task has more rows than go into a file, and `auto` collects a table."""
        lake = self.lake("large")
        streaming.job.batch._COLLECTED_BYTES = 0
        streaming.job.batch._COLLECTED_ROWS = 30
        streaming.job.batch._FILE_ROWS = 20
        written = self.write(lake, "auto", 0, ("lag", *TWO))
        files = {name: DeltaTable(lake.path(name)).file_uris() for name in TWO}
        by_tasks = {name: sum(".zstd." in uri for uri in uris) for name, uris in files.items()}
        return {"written": written, "files": {name: len(uris) for name, uris in files.items()}, "by_tasks": by_tasks}

    def what_is_configured(self) -> dict[str, Any]:
        hadoop, entries = {}, self.spark.sparkContext._jsc.hadoopConfiguration().iterator()  # type: ignore[attr-defined]
        while entries.hasNext():
            entry = entries.next()
            hadoop[entry.getKey()] = entry.getValue()
        return {"spark": dict(self.spark.sparkContext.getConf().getAll()), "hadoop": hadoop}


def main(folder: Path, root: str) -> None:
    program = Program(folder, root)
    answers = {}
    for part in (
        program.each_writer,
        program.switched_within_a_batch,
        program.a_stateful_query,
        program.what_is_configured,
        program.a_large_batch,
    ):
        try:
            answers[part.__name__] = part()
        except Exception:  # noqa: BLE001 - its tests fail, the others do not
            traceback.print_exc()
    (folder / "answers.json").write_text(json.dumps(answers), "utf-8")
    program.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
