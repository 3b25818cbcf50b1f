"""A standalone Spark cluster with one master, from pyspark's own files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
import pyspark

from streaming.jars import find_java
from streaming.process import GuardedProcess
from tests.short_lived import SHORT_LIVED

_PATIENCE_S = 60.0


class StandaloneCluster:
    """Runs for the duration of the block, on free ports of the loopback.

    Attributes:
        master: `spark://127.0.0.1:PORT`.
        work: Folder of the executors' output.
    """

    def __init__(self, folder: Path, workers: int = 1, cores: int = 2, memory: str = "1g") -> None:
        """Prepare; `cores` and `memory` are of each worker."""
        self.work = folder / "work"
        self._folder = folder
        self._workers = workers
        self._of_each = ("--cores", str(cores), "--memory", memory)
        self._processes: list[GuardedProcess] = []
        self._worker_processes: list[GuardedProcess] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        self.master = self._told("master", r"Starting Spark master at (spark://\S+)")
        for number in range(self._workers):
            name, of_it = f"worker-{number}", [*self._of_each, "--work-dir", str(self.work)]
            self._start(name, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", *of_it, self.master)
            self._worker_processes.append(self._processes[-1])
            self._told(name, "(Successfully registered) with master")
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.stop(10)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors with SIGKILL, as when its machine is lost."""
        kill_tree(self._worker_processes[number].pid)

    def _start(self, name: str, main: str, *arguments: str) -> None:
        # As on another machine: without our variables, and those of this process's Spark, in the environment.
        ours = [name for name in os.environ if name.startswith(("EVENKEEL_", "SPARK_", "PY"))]
        without = ["/usr/bin/env", *(word for name in ours for word in ("-u", name))]
        self._processes.append(
            GuardedProcess(
                [
                    *without,
                    Path(pyspark.__file__).parent / "bin" / "spark-class",
                    main,
                    *arguments,
                    "--webui-port",
                    "0",
                ],
                log=self._folder / f"{name}.log",
                cwd=self._folder,
                environment={
                    "JAVA_HOME": str(find_java().resolve().parents[1]),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_DAEMON_JAVA_OPTS": " ".join(SHORT_LIVED),
                },
            )
        )

    def _told(self, name: str, pattern: str) -> str:
        log = self._folder / f"{name}.log"
        deadline = time.monotonic() + _PATIENCE_S
        pause = threading.Event()
        while (found := re.search(pattern, log.read_text("utf-8", "replace"))) is None:
            assert time.monotonic() < deadline, log.read_text("utf-8", "replace")
            assert self._processes[-1].poll() is None, log.read_text("utf-8", "replace")
            pause.wait(0.1)
        return found[1]


def kill_tree(pid: int) -> None:
    """Kill a process and all that it has started."""
    process = psutil.Process(pid)
    for one in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # it ended with its parent
            one.kill()


def python_without_evenkeel(folder: Path) -> Path:
    """A Python like that of executors: it has all dependencies of the job, but not Evenkeel."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    # A folder that a .pth file names is searched, but .pth files in it, ours among them, are not read.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    python = folder / "bin" / "python"
    ours = subprocess.run([str(python), "-c", "import pyarrow, kafka; import streaming"], cwd=folder, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert "No module named 'streaming'" in ours.stderr, ours.stderr
    return python
