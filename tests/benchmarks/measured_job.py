"""The measured job: `start_query` on the present contents of the topics, in its own process, with a report per batch.

A separate process has a cold session, as after every restart, and all time that it and its children (the JVM, Spark's
Python workers) spend is the job's. The report is a file of JSON lines, `Report`s; a complete line never changes, so a
reader can follow the file.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]  # it ships no types
import pyarrow as pa

from streaming.config import Settings, environment_of, load_settings
from streaming.job.run import start_query
from streaming.job.session import start_session
from streaming.process import GuardedProcess
from streaming.tables import DeltaLake
from tests.benchmarks.figure import Say

_POLL_S = 0.2
_GRACE_S = 60.0
_MOST_BATCHES = 1_000
"""Number of progress reports that Spark keeps, instead of 20."""

_CHECKOUT = Path(__file__).parents[2]


class Spent(msgspec.Struct, frozen=True):
    """Processor seconds, user and system, since the process began.

    Attributes:
        driver: The Python driver, where rows are unpacked and appended.
        jvm: Spark's JVM.
        workers: Spark's Python workers, where source and operator run.
    """

    driver: float
    jvm: float
    workers: float

    @property
    def total(self) -> float:
        """All parts together."""
        return self.driver + self.jvm + self.workers

    def since(self, earlier: Spent) -> Spent:
        """Time spent since an earlier moment."""
        return Spent(self.driver - earlier.driver, self.jvm - earlier.jvm, self.workers - earlier.workers)


class BatchReport(msgspec.Struct, frozen=True, tag="batch"):
    """One batch, by its rows in the tables.

    Attributes:
        number: Number of the batch.
        at: Time of the report, s since the epoch.
        rows: Rows written, by table.
        append_s: Duration of the appends in seconds.
        spent: Processor time so far.
    """

    number: int
    at: float
    rows: dict[str, int]
    append_s: float
    spent: Spent


class JobReport(msgspec.Struct, frozen=True, tag="job"):
    """The end of a successful run.

    Attributes:
        began: Start of the process, s since the epoch.
        query: Time when the Spark session was ready and the query was started.
        progress: Spark's progress of each batch with data, as it prints them.
        spent_on_start: Processor time until the query was started.
        largest_memory: Largest memory in bytes, by part as in `Spent`; measured after each batch.
        batches: The batches.
    """

    began: float
    query: float
    progress: list[dict[str, Any]]
    spent_on_start: Spent
    largest_memory: dict[str, int]
    batches: list[BatchReport] = []


_REPORT = msgspec.json.Decoder(BatchReport | JobReport)


def measure_job(settings: Settings, folder: Path, say: Say) -> JobReport:
    """Run the job on the present contents of its topics, from a new checkpoint.

    Args:
        settings: All settings.
        folder: For the log and the report.
        say: Shows the progress.

    Raises:
        RuntimeError: It failed; the text is the last line of its log.
    """
    report = folder / "report.jsonl"
    report.unlink(missing_ok=True)
    say("the job starts")
    command = [sys.executable, "-m", "tests.benchmarks.measured_job", str(report)]
    log = folder / "job.log"
    # The benchmarks are not part of the installed package: they are imported from the checkout.
    environment = environment_of(settings) | {"PYTHONPATH": str(_CHECKOUT)}
    process = GuardedProcess(command, log=log, environment=environment)
    try:
        batches: list[BatchReport] = []
        for line in _lines(report, process.poll):
            if isinstance(line, JobReport):
                return msgspec.structs.replace(line, batches=batches)
            batches.append(line)
            say(f"the job has done {len(batches)} batches")
        message = f"the measured job failed: {process.last_line()} (all of it: {log})"
        print(log.read_text("utf-8", "replace")[-4_000:], file=sys.stderr)
        raise RuntimeError(message)
    finally:
        process.stop(_GRACE_S)


def memory_of(job: JobReport) -> str:
    """Its largest memory as text, part by part."""
    return ", ".join(f"{part} {held / 2**20:,.0f} MB" for part, held in job.largest_memory.items())


def _lines(report: Path, ended: Callable[[], int | None]) -> Iterator[BatchReport | JobReport]:
    """The lines of the report as they are written, until the process has ended."""
    read = 0
    while True:
        over = ended() is not None
        lines = report.read_bytes().splitlines(keepends=True) if report.exists() else []
        while read < len(lines) and lines[read].endswith(b"\n"):
            yield _REPORT.decode(lines[read])
            read += 1
        if over:
            return
        time.sleep(_POLL_S)


class _TimedLake(DeltaLake):
    """A lake that measures its appends."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._seconds = 0.0

    def append(self, table: str, rows: list[list[Any]] | pa.Table, writer: str, batch: int) -> int:
        began = time.perf_counter()
        try:
            return super().append(table, rows, writer, batch)
        finally:
            self._seconds += time.perf_counter() - began

    def taken(self) -> float:
        """Seconds of appends since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def _held(process: psutil.Process) -> int:
    """Memory of one process; shared memory (of forked workers) in equal parts, if the system reports it."""
    full = process.memory_full_info()
    return int(getattr(full, "pss", 0) or full.uss)


class _Tree:
    """This process and its descendants."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self.began = float(self._me.create_time())
        self.largest: dict[str, int] = {}
        # By process, including ended ones: Spark's workers come and go, and nobody collects their times.
        self._seconds: dict[psutil.Process, tuple[str, float]] = {}

    def spent(self) -> Spent:
        """Processor time so far; for an ended process, as of the last call before its end."""
        memory = {"driver": 0, "jvm": 0, "workers": 0}
        for process in (self._me, *self._me.children(recursive=True)):
            try:
                with process.oneshot():
                    java = "java" in process.name()
                    times, held = process.cpu_times(), _held(process)
            except psutil.Error:
                continue
            part = "driver" if process == self._me else "jvm" if java else "workers"
            self._seconds[process] = part, times.user + times.system
            memory[part] += held
        for part, held in memory.items():
            self.largest[part] = max(self.largest.get(part, 0), held)
        return Spent(**{part: sum(s for of, s in self._seconds.values() if of == part) for part in memory})


def main(report: str) -> int:
    """Run to the end of the topics; returns the exit code."""
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    tree = _Tree()
    settings = load_settings()
    lake = _TimedLake(settings.lake)
    lake.create()
    spark = start_session([settings], f"evenkeel bench {settings.cluster}")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", _MOST_BATCHES)
    encoder = msgspec.json.Encoder(enc_hook=str)
    with Path(report).open("ab", buffering=0) as file:

        def done(number: int, rows: dict[str, int]) -> None:
            line = BatchReport(number, time.time(), rows, lake.taken(), tree.spent())
            file.write(encoder.encode(line) + b"\n")

        on_start = tree.spent()
        started = time.time()
        query = start_query(spark, settings, lake, available_now=True, done=done)
        query.awaitTermination()
        progress = [dict(p) for p in query.recentProgress if p["numInputRows"]]
        file.write(encoder.encode(JobReport(tree.began, started, progress, on_start, tree.largest)) + b"\n")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
