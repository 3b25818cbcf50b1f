"""`python -m tests.e2e.killing_job MOMENT TOLD ARGUMENTS...`: the job, with a SIGKILL at one moment of one batch.

MOMENT is `batch:moment:whom`. Moments, in the order of a batch:

    in-append       around the commit of the first table's append
    after-append-1  one table is written, the others are not (after-append-2: two)
    in-maintenance  all tables are written, and their files are being joined

Whom: `driver` (only the Python process; the JVM must notice it) or `all` (JVM too, as when a container ends). The
killed processes are written to the file TOLD, a JSON object a line.

After each batch the job joins the files of every table that has two.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame

import streaming.job.run
from streaming.job.__main__ import main as run_job
from streaming.job.batch import batch_writer
from streaming.maintain import Maintainer
from streaming.tables import DeltaLake

_COMMIT_AFTER_S = 0.01
"""An append takes some tens of ms, as does a piece of maintenance; any moment within it will do."""


class _Killer:
    """Waits for the moment, and then kills the job.

    Attributes:
        appended: Tables already appended to in the current batch.
    """

    def __init__(self, moment: str, told: Path) -> None:
        batch, self._moment, self._whom = moment.split(":")
        self._batch = int(batch)
        self._told = told
        self.number = -1
        self.appended: list[str] = []

    def begin(self, number: int) -> None:
        self.number = number
        self.appended.clear()

    def is_due(self, moment: str) -> bool:
        return self.number == self._batch and moment == self._moment

    def kill(self) -> None:
        """Kill the driver, which calls this."""
        children = psutil.Process().children(recursive=True)
        told = {
            "batch": self._batch,
            "moment": self._moment,
            "appended": self.appended,
            "children": [[child.pid, child.create_time()] for child in children],
        }
        with self._told.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
        if self._whom == "all":
            os.killpg(os.getpgid(0), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


class _Watch:
    """Counts the appends of a lake, which stays what it is: the writer asks for its type."""

    def __init__(self, lake: Any, killer: _Killer) -> None:
        self._killer = killer
        self._append, lake.append = lake.append, self.append
        if isinstance(lake, DeltaLake):
            self._add_files, lake.add_files = lake.add_files, self.add_files

    def append(self, table: str, rows: list[list[Any]] | pa.Table, writer: str, batch: int) -> int:
        self._begin()
        written: int = self._append(table, rows, writer, batch)
        self._end(table)
        return written

    def add_files(self, table: str, files: list[AddAction], writer: str, batch: int) -> bool:
        self._begin()
        is_new = self._add_files(table, files, writer, batch)
        self._end(table)
        return is_new

    def _begin(self) -> None:
        if self._killer.is_due("in-append") and not self._killer.appended:
            threading.Thread(target=_kill_soon, args=(self._killer,), daemon=True).start()

    def _end(self, table: str) -> None:
        if table not in self._killer.appended:
            self._killer.appended.append(table)
            if self._killer.is_due(f"after-append-{len(self._killer.appended)}"):
                self._killer.kill()


def _kill_soon(killer: _Killer) -> None:
    time.sleep(_COMMIT_AFTER_S)
    killer.kill()


def main(moment: str, told: str, arguments: list[str]) -> int:
    killer = _Killer(moment, Path(told))

    def killing_writer(lake: Any, *others: Any) -> Callable[[DataFrame, int], None]:
        _Watch(lake, killer)
        write = batch_writer(lake, *others)

        def write_or_die(frame: DataFrame, number: int) -> None:
            killer.begin(number)
            write(frame, number)
            if killer.is_due("in-maintenance"):
                threading.Thread(target=_kill_soon, args=(killer,), daemon=True).start()
            # A new one each time: it joins what it has joined an hour ago.
            for _ in Maintainer(lake.root).work():
                pass
            if killer.is_due("in-maintenance"):
                threading.Event().wait()  # for the kill

        return write_or_die

    streaming.job.run.batch_writer = killing_writer  # type: ignore[assignment]
    return run_job(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
