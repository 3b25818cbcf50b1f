"""Both writers of a batch: what each costs by the number of rows, and a job with Spark's own on a standalone master.

`writers` measures writing alone, with the operator's output in files. `on_a_cluster` measures a whole job whose batch
has a million rows.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import cast, get_args

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from streaming.config import JobSettings, Settings, Writer
from streaming.groups import Rows, encode_rows
from streaming.groups.rows import GroupHealthRow, LagRow
from streaming.job.batch import batch_writer
from streaming.job.run import start_session
from streaming.tables import DeltaLake
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.made_groups import MadeGroups
from tests.benchmarks.measured_job import JobReport, Spent, Tree, measure_job, memory_of
from tests.e2e.standalone import StandaloneCluster

__all__ = ["on_a_cluster", "writers"]

_PARTITIONS = 10
_ROWS = (10_000, 100_000, 1_000_000)
"""Rows of `lag` in a batch; `group_health` has a tenth of them."""

_BATCHES = 4
"""Of each size; the first does not count."""

_CHECKOUT = Path(__file__).parents[2]
_LIMIT_S = 900


class Written(msgspec.Struct, frozen=True):
    """One batch; the first entry is the start of the session, without rows.

    Attributes:
        rows: Rows written.
        seconds: Its time by the clock.
        spent: Its processor time.
        memory: Largest memory so far, bytes, by part as in `Spent`.
    """

    rows: int
    seconds: float
    spent: Spent
    memory: dict[str, int]


def writers(cluster: BenchCluster, say: Say) -> list[Figure]:
    """Measure writing alone; the same files for each writer, each in a process of its own.

    Raises:
        RuntimeError: A process failed.
    """
    figures: list[Figure] = []
    for rows in _ROWS:
        folder = cluster.folder / f"packed-{rows}"
        say(f"a batch of {rows:,} rows")
        _write_packed(folder, rows)
        for writer in get_args(Writer):
            say(f"{writer}, {rows:,} rows")
            start, *batches = _measured(writer, cluster.folder / f"written-{writer}-{rows}.json", folder)
            figures.extend(_figures(writer, rows, start, batches))
        shutil.rmtree(folder)
    return figures


def _write_packed(folder: Path, rows: int) -> None:
    folder.mkdir()
    payloads = [encode_rows(_rows_of(group)) for group in range(rows // _PARTITIONS)]
    half = -(-len(payloads) // 2)
    for part in range(2):
        table = pa.table({"rows": pa.array(payloads[part * half : (part + 1) * half], pa.binary())})
        pq.write_table(table, folder / f"{part}.parquet")


def _rows_of(number: int) -> Rows:
    group, topic, now, offset = f"checkout-service-{number}", f"orders-{number // 10}", 1_763_900_000_000, 10**6
    lag = [
        LagRow(
            "bench", group, topic, None, partition, "log", 1_000, now, 20_415, False, offset + number,
            offset + number + 5, offset + number + 5, 0, 5, 5, 0, 0, "ok", None, 2, now, 0, False, True,
            f"consumer-{group}-{partition % 2}", "consumer", "/10.0.0.1", now - 15_000, now - 5_000, "rounds", None,
            12.5, 12.0,
        )
        for partition in range(_PARTITIONS)
    ]  # fmt: skip
    health = GroupHealthRow(
        "bench", "id", group, "log", number % 50, 1_000, now, 20_415, False, "Stable", "classic", "consumer", "range",
        None, None, 1, 1, now, 2, "identical", None, 0, (), 1, 10, 10, 50, 50, 0, 5, 0, "ok", 20, 0.0, 0.0, 5.0,
        15.0, None, topic, 0, None, None, None, "no_retention", None, None, None, None,
        125.0, 120.0, 480.0, 0.1, 0.0, 0.0, (), None,
    )  # fmt: skip
    return Rows(lag=lag, group_health=[health])


def _measured(writer: str, report: Path, folder: Path) -> list[Written]:
    command = [sys.executable, "-m", "tests.benchmarks.writers", writer, str(report), *[str(folder)] * _BATCHES]
    done = subprocess.run(command, cwd=_CHECKOUT, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode:
        message = f"the writer {writer} failed: {done.stderr.strip()[-500:]}"
        raise RuntimeError(message)
    shutil.rmtree(report.with_suffix(".lake"))
    return msgspec.json.decode(report.read_bytes(), type=list[Written])


def _figures(writer: str, rows: int, start: Written, batches: list[Written]) -> list[Figure]:
    cold, *warm = batches
    spent = sorted(warm, key=lambda batch: batch.spent.total)[len(warm) // 2].spent
    memory = {part: held / 2**20 for part, held in batches[-1].memory.items()}
    return [
        Figure(
            f"{writer}, {rows:,} rows of lag: processor time",
            f"{spent.total:.2f} s",
            "",
            f"driver {spent.driver:.2f}, jvm {spent.jvm:.2f}, workers {spent.workers:.2f}; by the clock "
            f"{median(batch.seconds for batch in warm):.2f} s (median of {len(warm)}); first batch "
            f"{cold.spent.total:.1f} s; session {start.spent.total:.1f} s",
        ),
        Figure(
            "  memory", f"{sum(memory.values()):,.0f} MB", "", ", ".join(f"{p} {m:,.0f}" for p, m in memory.items())
        ),
    ]


def on_a_cluster(cluster: BenchCluster, say: Say, groups: int = 100_000, rounds: int = 3) -> list[Figure]:
    """A job whose batch has eleven rows for each of many groups, with Spark's writer on a master with two cores.

    Raises:
        RuntimeError: It failed.
    """
    settings = _made(cluster, "cluster", groups, rounds, say)
    with StandaloneCluster(cluster.folder / "standalone", cores=2, memory="2g") as spark:
        job = measure_job(settings, cluster.folder, say, spark.master, spark.pids)
    last, before = job.batches[-1], job.batches[-2]
    spent, progress = last.spent.since(before.spent), job.progress[-1]
    rows = sum(last.rows.values())
    return [
        Figure(
            f"{groups:,} groups x {_PARTITIONS} partitions on a standalone master",
            f"{progress['durationMs']['triggerExecution'] / 1000:.1f} s",
            "under 60 s",
            f"a batch of {rows:,} rows, writer {settings.job.writer}; processor time {spent.total:.1f} s (executors "
            f"{spent.workers:.1f}, driver {spent.driver:.2f}, its JVM {spent.jvm:.1f})",
        ),
        Figure(
            "  memory", f"{_driver_memory(job):,.0f} MB", "under 1,024 MB", f"driver with its JVM; {memory_of(job)}"
        ),
    ]


def _driver_memory(job: JobReport) -> float:
    return (job.largest_memory["driver"] + job.largest_memory["jvm"]) / 2**20


def _made(cluster: BenchCluster, name: str, groups: int, rounds: int, say: Say) -> Settings:
    settings = cluster.settings(name, max_rounds=1)
    settings = settings.model_copy(update={"job": settings.job.model_copy(update={"writer": "spark"})})
    with MadeGroups(settings, groups, _PARTITIONS) as made:
        made.rebalance(made.groups)
        for number in range(rounds):
            say(f"writing round {number + 1} of {rounds}: {made.records:,} records so far")
            made.commit()
            made.round()
    return settings


# One writer, in a process of its own.


def _write(writer: Writer, report: Path, folders: list[Path]) -> None:
    """Write all batches, one after the other, to a new lake beside the report."""
    logging.basicConfig(level=logging.WARNING)
    tree, began = Tree(), time.monotonic()
    none = Spent(0, 0, 0)
    spark = start_session(Settings(job=JobSettings(writer=writer)), "evenkeel bench writers")
    found = [Written(0, time.monotonic() - began, tree.spent().since(none), dict(tree.largest))]
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "bench")
    lake = DeltaLake(str(report.with_suffix(".lake")))
    lake.create()
    rows: dict[str, int] = {}
    write = batch_writer(lake, lambda _, written: rows.update(written), writer=writer)
    for number, folder in enumerate(folders):
        rows.clear()
        before, began = tree.spent(), time.monotonic()
        write(spark.read.parquet(str(folder)), number)
        seconds = time.monotonic() - began
        found.append(Written(sum(rows.values()), seconds, tree.spent().since(before), dict(tree.largest)))
    report.write_bytes(msgspec.json.encode(found))
    spark.stop()


if __name__ == "__main__":
    _write(cast("Writer", sys.argv[1]), Path(sys.argv[2]), [Path(folder) for folder in sys.argv[3:]])
