"""`python -m tests.job.spark_writer_program FOLDER`: lakes written by both writers, in one Spark session with Delta.

Each part fills a folder of its own; `test_spark_writer.py` reads them. A part that fails prints why, and the tests that
need it fail.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import streaming.job.batch
from streaming.config import JobSettings, Settings
from streaming.config import Writer as Choice
from streaming.groups import Rows
from streaming.job.batch import batch_writer
from streaming.job.session import register, start_session
from streaming.job.spark_writer import _append
from streaming.tables import TABLES, DeltaLake, DeltaLogTail, table_named, to_arrow
from tests.job.hostile_rows import hostile_rows

QUERY = "the-query"

TWO = ("lag", "gaps")
SEVERAL = (*TWO, "rounds")
LARGER_LAG = ("lag", *TWO)
"""Each write costs Spark a second, so that only one part writes all tables."""

ALL = tuple(table.name for table in TABLES)

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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spark: SparkSession = start_session(
            Settings(job=JobSettings(writer="spark", shuffle_partitions=2)), "writers"
        )
        # Small queries, each run once: compiling any of them costs more than running it.
        self.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        self.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        self.spark.sparkContext.setLocalProperty("sql.streaming.queryId", QUERY)

    def frame(self, number: int, names: Sequence[str]) -> DataFrame:
        table = pa.table({"rows": pa.array(packed(rows_of(number, names)), pa.binary())})
        return self.spark.createDataFrame(table).repartition(2)

    def lake(self, name: str) -> DeltaLake:
        lake = DeltaLake(str(self.folder / name))
        lake.create()
        return lake

    def write(
        self, lake: DeltaLake, writer: Choice, number: int, names: Sequence[str], catalog: str | None = None
    ) -> dict[str, int]:
        written: dict[str, int] = {}
        write = batch_writer(lake, lambda _, rows: written.update(rows), None, writer, catalog)
        write(self.frame(number, names), number)
        return written

    def each_writer(self) -> dict[str, Any]:
        for writer in ("delta-rs", "spark"):
            lake = self.lake(writer)
            written = self.write(lake, writer, 1, ALL)
        tail = DeltaLogTail(lake.root, table_named("lag"), "round_time")
        first = tail.read_new_files()
        self.write(lake, "spark", 2, ["lag"])
        second = tail.read_new_files()
        return {
            "written": written,
            "again": self.write(lake, "spark", 2, ["lag"]),
            "older": self.write(lake, "spark", 1, ["lag"]),
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
            torn = TornLake(str(self.folder / name))
            with suppress(RefusedError):
                self.write(torn, first, 0, SEVERAL)
            answers[name] = self.write(self.lake(name), second, 0, SEVERAL)
        return answers

    def switched_between_batches(self) -> dict[str, Any]:
        lake = self.lake("switched")
        streaming.job.batch._COLLECTED_BYTES = 0
        streaming.job.batch._COLLECTED_ROWS = 30
        for number, writer in enumerate(("delta-rs", "auto", "spark", "delta-rs")):
            self.write(lake, writer, number, LARGER_LAG if writer == "auto" else TWO)
        return {name: engines(lake, name) for name in TWO}

    def only_delta_skips(self) -> dict[str, Any]:
        lake, table = self.lake("skipped"), table_named("gaps")
        DeltaTable(lake.path(table.name)).alter.set_table_properties({"delta.checkpointInterval": "2"})
        counts = []
        for number in (5, 5, 4, 6):
            rows = self.spark.createDataFrame(named(table.name, [f"{number}"])).coalesce(1)
            _append(rows, table, lake, QUERY, number, None)
            counts.append(count(lake, table.name))
        return {
            "counts": counts,
            # (Hadoop's sum beside it shows that it is Spark's.)
            "checkpoints": len(list(Path(lake.path(table.name), "_delta_log").glob(".*.checkpoint.parquet.crc"))),
            "after_it": lake.append(table.name, hostile_rows(table, "6"), QUERY, 6),
        }

    def commits_beside_it(self) -> dict[str, Any]:
        lake, table = self.lake("beside"), table_named("gaps")
        for number in range(4):
            lake.append(table.name, hostile_rows(table, f"{number}"), QUERY, number)
        root, before = lake.root, count(lake, table.name)

        def with_a_commit(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # Here the append's transaction has begun, and is not committed.
            DeltaTable(f"{root}/gaps").optimize.compact()
            DeltaTable(f"{root}/gaps").delete("topic = '1-'")
            yield from batches

        rows = self.spark.createDataFrame(named(table.name, ["9"])).coalesce(1)
        _append(rows.mapInArrow(with_a_commit, rows.schema), table, lake, QUERY, 9, None)
        history = DeltaTable(lake.path(table.name)).history()
        return {
            "before": before,
            "deleted": history[1]["operationMetrics"]["num_deleted_rows"],
            "after": count(lake, table.name),
            "log": [commit["operation"] for commit in reversed(history)],
        }

    def in_a_catalog(self) -> dict[str, Any]:
        lake = self.lake("catalog")
        registered = register(self.spark, lake.root, "evenkeel")
        written = [self.write(lake, "auto", 0, TWO, "evenkeel") for _ in range(2)]
        return {
            "registered": registered,
            "written": written,
            "engines": {name: engines(lake, name) for name in TWO},
            "by_name": self.spark.table("evenkeel.lag").count(),
        }

    def a_stateful_query(self) -> dict[str, Any]:
        """A stream with an operator that says how often it was called, and a new session for each writer."""
        source = self.folder / "source"
        source.mkdir()
        calls = self.folder / "calls"
        payloads = {f"key-{key}": one for key, one in enumerate(packed(rows_of(0, ["lag"])))}

        def apply(key: tuple[str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
            for _ in frames:
                pass
            with calls.open("a") as file:
                file.write(f"{key[0]}\n")
            state.update((1,))
            yield pd.DataFrame({"rows": [payloads[key[0]]]})

        answers: dict[str, Any] = {}
        for number in range(2):
            part = source / f".{number}"
            part.write_text("".join(json.dumps({"key": key}) + "\n" for key in payloads), "utf-8")
            part.rename(source / f"{number}.json")
        streaming.job.batch._COLLECTED_ROWS = 0
        for name, writer, limit in (("spark", "spark", 0), ("auto-large", "auto", 0), ("auto-small", "auto", 10**9)):
            streaming.job.batch._COLLECTED_BYTES = limit
            lake = self.lake(f"stream-{name}")
            query = (
                self.spark.readStream.schema("key string")
                .option("maxFilesPerTrigger", 1)
                .json(str(source))
                .groupBy("key")
                .applyInPandasWithState(apply, "rows binary", "version int", "append", "NoTimeout")
                .writeStream.option("checkpointLocation", str(self.folder / f"checkpoint-{name}"))
                .foreachBatch(batch_writer(lake, None, None, writer))  # type: ignore[arg-type]
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            answers[name] = {
                "calls": sorted(calls.read_text().split()),
                "engines": engines(lake, "lag"),
                "nothing_kept": self.spark._jsparkSession.sharedState().cacheManager().isEmpty(),  # type: ignore[attr-defined]
            }
            calls.unlink()
        return answers


def log_of(lake: DeltaLake, table: str) -> list[dict[str, Any]]:
    commits = sorted(Path(lake.path(table), "_delta_log").glob("*.json"))
    return [json.loads(line) for commit in commits for line in commit.read_text("utf-8").splitlines()]


def named(table: str, marks: list[str]) -> pa.Table:
    one = table_named(table)
    return pa.concat_tables([to_arrow(one, hostile_rows(one, mark)) for mark in marks])


def count(lake: DeltaLake, table: str) -> int:
    return int(DeltaTable(lake.path(table)).to_pyarrow_table(columns=["cluster"]).num_rows)


def engines(lake: DeltaLake, table: str) -> list[str]:
    """What wrote each commit after the first, which made the table."""
    history = DeltaTable(lake.path(table)).history()
    return ["spark" if "Spark" in h.get("engineInfo", "") else "delta-rs" for h in reversed(history[:-1])]


def play(parts: Iterable[Callable[[], dict[str, Any]]], folder: Path) -> None:
    """Run each part, and write their answers by their names to `answers.json`."""
    answers = {}
    for part in parts:
        try:
            answers[part.__name__] = part()
        except Exception:  # noqa: BLE001 - its tests fail, the others do not
            traceback.print_exc()
    (folder / "answers.json").write_text(json.dumps(answers), "utf-8")


def main(folder: Path) -> None:
    program = Program(folder)
    parts = (
        program.each_writer,
        program.switched_within_a_batch,
        program.only_delta_skips,
        program.commits_beside_it,
        program.in_a_catalog,
        program.a_stateful_query,
        program.switched_between_batches,
    )
    play(parts, folder)
    program.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
