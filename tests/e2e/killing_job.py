"""`python -m tests.e2e.killing_job MOMENT TOLD ARGUMENTS...`: the job, with a SIGKILL at one moment of one batch.

MOMENT is `batch:moment:whom`. Moments, in the order of a batch:

    before-collect  nothing of the batch has run yet
    in-operator     the first group is being advanced, in a worker; no state is stored
    after-collect   all states are stored, no table is written
    in-append       around the commit of the first table's append
    after-append-1  one table is written, the others are not (after-append-2: two)
    after-appends   all tables are written, but Spark does not know it yet
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame

import streaming.job.run
from streaming.config import Settings
from streaming.job.__main__ import main as run_job
from streaming.job.batch import batch_writer
from streaming.job.operator import operator
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
        self.flag = told.with_suffix(".flag")
        self.flag.unlink(missing_ok=True)
        self.driver = os.getpid()
        self.number = -1
        self.appended: list[str] = []

    def begin(self, number: int) -> None:
        self.number = number
        self.appended.clear()
        if self.is_due("in-operator"):
            self.flag.touch()

    def is_due(self, moment: str) -> bool:
        return self.number == self._batch and moment == self._moment

    def reach(self, moment: str) -> None:
        if self.is_due(moment):
            self.kill()

    def takes_flag(self) -> bool:
        """Whether the caller, one of several workers, is the one to be killed."""
        try:
            self.flag.unlink()
        except FileNotFoundError:
            return False
        return True

    def kill(self) -> None:
        """Kill the driver; called by the driver itself, or by one of its workers."""
        children = psutil.Process(self.driver).children(recursive=True)
        told = {
            "batch": self._batch,
            "moment": self._moment,
            "appended": self.appended,
            "children": [[child.pid, child.create_time()] for child in children],
        }
        with self._told.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
        if self._whom == "all":
            os.killpg(os.getpgid(self.driver), signal.SIGKILL)
        else:
            os.kill(self.driver, signal.SIGKILL)
        os._exit(1)


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
            self._killer.reach(f"after-append-{len(self._killer.appended)}")


class _WatchedFrame:
    """A batch that reports when it has been collected."""

    def __init__(self, frame: DataFrame, killer: _Killer) -> None:
        self._frame, self._killer = frame, killer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    def toArrow(self) -> Any:  # noqa: N802 - pyspark's name
        rows = self._frame.toArrow()
        self._killer.reach("after-collect")
        return rows


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
            killer.reach("before-collect")
            write(_WatchedFrame(frame, killer), number)  # type: ignore[arg-type]  # as far as the writer looks
            killer.reach("after-appends")
            if killer.is_due("in-maintenance"):
                threading.Thread(target=_kill_soon, args=(killer,), daemon=True).start()
            # A new one each time: it joins what it has joined an hour ago.
            for _ in Maintainer(lake.root).work():
                pass
            if killer.is_due("in-maintenance"):
                threading.Event().wait()  # for the kill

        return write_or_die

    def killing_operator(settings: Settings, *others: Any) -> Callable[..., Iterator[Any]]:
        apply = operator(settings, *others)

        def apply_or_die(key: tuple[str], frames: Iterator[Any], state: Any) -> Iterator[Any]:
            if killer.takes_flag():
                killer.kill()
            yield from apply(key, frames, state)

        return apply_or_die

    streaming.job.run.batch_writer = killing_writer  # type: ignore[assignment]
    streaming.job.run.operator = killing_operator  # type: ignore[assignment]
    return run_job(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
