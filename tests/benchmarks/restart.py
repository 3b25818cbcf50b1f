"""How long rows stay away when the job's JVM, or the job itself, is killed under a running `evenkeel up`.

Rounds come every 2 s. What counts is the time from the kill until the tables have a round that closed after it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median

import psutil  # type: ignore[import-untyped]  # it ships no types

from streaming.config import ProbeSettings, Settings
from streaming.process import GuardedProcess
from tests.benchmarks.bench_cluster import BenchCluster
from tests.benchmarks.figure import Figure, Say
from tests.benchmarks.whole_up import CommittingGroups, GroupsSize, await_rounds, part_of, rounds_of, up, up_settings

_SIZE = GroupsSize(20, 5, 2)
_INTERVAL_MS = 2_000
_ROUNDS_BETWEEN = 30
"""A minute: a program that has run so long is well, and restarted after the shortest pause."""

_TIMES = 3
_POLL_S = 0.05
_LONGEST_S = 120.0


def restart(cluster: BenchCluster, say: Say) -> list[Figure]:
    """Kill each three times."""
    settings = up_settings(cluster, "restart", ProbeSettings(interval_ms=_INTERVAL_MS))
    CommittingGroups(cluster.bootstrap, _SIZE, say)
    figures = []
    with up(settings, cluster.folder / "restart") as process:
        for part in ("JVM", "driver"):
            took = []
            for number in range(_TIMES):
                say(f"kill {number + 1} of {_TIMES}: {part}")
                await_rounds(settings, process, rounds_of(settings) + _ROUNDS_BETWEEN)
                took.append(_kill(settings, process, part))
            ends = [median(times) for times in zip(*took, strict=True)]
            figures.append(
                Figure(
                    f"{'JVM' if part == 'JVM' else 'job'} killed: until rows come again",
                    f"{ends[-1]:.1f} s",
                    "15 s",
                    f"median of {_TIMES}, up to {max(times[-1] for times in took):.1f} s; "
                    f"a new process after {ends[0]:.1f} s, its JVM after {ends[1]:.1f} s",
                )
            )
    return figures


def _kill(settings: Settings, process: GuardedProcess, part: str) -> tuple[float, float, float]:
    """Kill one process; returns the seconds until there is a new job, a new JVM, and a new round in the tables."""
    # The JVM that writes the archive of classes, once on a new machine, ends soon.
    _until(lambda: len(_of(part, process)) == 1)
    before = _parts(process)
    [victim] = _of(part, process)
    rounds = rounds_of(settings)
    os.kill(victim, signal.SIGKILL)
    began = time.monotonic()

    def is_new(part: str) -> bool:
        return any(of == part and pid not in before for pid, of in _parts(process).items())

    return (
        _until(lambda: is_new("driver")) - began,
        _until(lambda: is_new("JVM")) - began,
        _until(lambda: rounds_of(settings) > rounds) - began,
    )


def _of(part: str, process: GuardedProcess) -> list[int]:
    return [pid for pid, of in _parts(process).items() if of == part]


def _parts(process: GuardedProcess) -> dict[int, str]:
    """What each process below is."""
    found = {}
    for one in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            found[one.pid] = part_of(one)
    return found


def _until(is_so: Callable[[], bool]) -> float:
    end = time.monotonic() + _LONGEST_S
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError("nothing came back after a kill")
        time.sleep(_POLL_S)
    return time.monotonic()
