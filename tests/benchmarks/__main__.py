"""`python -m tests.benchmarks [NAME ...]`: measure on this machine, and print a table.

The exit code is 0 whatever the figures are: they are not a test. It is 1 if something could not be measured, 2 if a
person must do something first.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.table import Table

from streaming.exceptions import SETUP_EXIT_CODE, SetupError
from tests.benchmarks.ages import ages
from tests.benchmarks.assign import assignments
from tests.benchmarks.bench_cluster import BenchCluster, bench_cluster
from tests.benchmarks.catch_up import catch_up
from tests.benchmarks.core import core
from tests.benchmarks.delay import delay
from tests.benchmarks.downtime import downtime
from tests.benchmarks.figure import Figure, Say, load, machine
from tests.benchmarks.fleet import fleet
from tests.benchmarks.history import history
from tests.benchmarks.reading import reading
from tests.benchmarks.rest import active, rest, scale
from tests.benchmarks.restart import restart
from tests.benchmarks.serve import serve
from tests.benchmarks.steady_state import FULL, steady_state

Measure = Callable[[BenchCluster, Say], list[Figure]]
"""Some need no broker, and pass over it."""


_MEASURES: dict[str, Measure] = {
    "core": lambda _, say: core(say),
    "assign": lambda _, say: assignments(say),
    "reading": reading,
    "catch-up": catch_up,
    "downtime": downtime,
    "steady-state": steady_state,
    "delay": delay,
    "history": lambda _, say: history(say),
    "ages": lambda _, say: ages(say),
    "serve": lambda _, say: serve(say),
    "rest": rest,
    "active": active,
    "scale": lambda _, say: scale(say),
    "fleet": fleet,
    "restart": restart,
}
"""By name, in the order of the table."""

_FULL: dict[str, Measure] = {
    "ages": lambda _, say: ages(say, groups=1_000),
    "catch-up": lambda cluster, say: catch_up(cluster, say, partitions=50, cold=20, warm=400),
    "downtime": lambda cluster, say: downtime(cluster, say, missed=720, rounds_a_batch=60),
    "steady-state": lambda cluster, say: [figure for size in FULL for figure in steady_state(cluster, say, size)],
}
"""Measurements that `--full` runs at another size."""

_FILE_WIDTH = 160
"""Width of the table without a terminal: one line per figure."""

_NAMES = list(_MEASURES)


def main(arguments: list[str] | None = None) -> int:
    """Run the named benchmarks, or all; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(_NAMES)}; none for all")
    parser.add_argument("--full", action="store_true", help=f"{', '.join(_FULL)}: at full size (an hour)")
    given = parser.parse_args(arguments)
    names = given.names or _NAMES
    if unknown := [name for name in names if name not in _NAMES]:
        parser.error(f"there is no measurement {unknown[0]!r}; there are {', '.join(_NAMES)}")
    # Clients report every lost connection at length; here one is lost whenever a broker ends.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    console = Console()
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    try:
        with _ended_by_signals():
            return _run(console, [name for name in _NAMES if name in names], full=given.full)
    except SetupError as error:
        print(error, file=sys.stderr)
        return SETUP_EXIT_CODE
    except KeyboardInterrupt:
        print("stopped; nothing is left behind", file=sys.stderr)
        return 128 + signal.SIGINT


def _run(console: Console, names: list[str], *, full: bool) -> int:
    measures = _MEASURES | _FULL if full else _MEASURES
    size, busy = machine(), [load()]
    figures: list[Figure] = []
    failed = False
    with ExitStack() as stack, console.status("starting") as status:
        status.update("the broker starts")
        cluster = stack.enter_context(bench_cluster())
        for name in names:

            def say(text: str, name: str = name) -> None:
                status.update(f"{name}: {text}")

            try:
                figures.extend(measures[name](cluster, say))
            except (AssertionError, RuntimeError) as error:
                failed = True
                figures.append(Figure(name, "not measured", "", str(error)))
            busy.append(load())
        status.update("the broker stops")
        stack.close()
    console.print(_table(figures))
    console.print(f"on {size}; load {busy[0]:.1f} before, {max(busy[1:]):.1f} at most meanwhile", highlight=False)
    if busy[0] > 1:
        console.print("others were at work: the machine alone is faster than this", highlight=False)
    return int(failed)


def _table(figures: list[Figure]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for name, justify in (("what", "left"), ("figure", "right"), ("aim", "right"), ("of what", "left")):
        table.add_column(name, justify=justify, no_wrap=name in {"figure", "aim"})  # type: ignore[arg-type]
    for figure in figures:
        table.add_row(figure.name, figure.value, figure.aim, figure.note)
    return table


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM end the program like Ctrl-C, through every `finally`."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
