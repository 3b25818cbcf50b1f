"""`python -m tests.benchmarks.measured_writer WRITER REPORT FOLDER...`: what writing alone costs, in its own process.

The operator's packed rows are in Parquet files, as many tasks as there are files in a folder; each folder is a batch.
The report is a JSON list of `Written`.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import cast

import msgspec

from streaming.config import JobSettings, Settings, Writer
from streaming.job.batch import batch_writer
from streaming.job.session import start_session
from streaming.tables import DeltaLake
from tests.benchmarks.measured_job import Spent, Tree

__all__ = ["Written"]


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


def main(writer: Writer, report: Path, folders: list[Path]) -> None:
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
    main(cast("Writer", sys.argv[1]), Path(sys.argv[2]), [Path(folder) for folder in sys.argv[3:]])
